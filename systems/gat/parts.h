// Which nodes are for training, and which for validation and test.
#pragma once

#include "data/formats/graph.h"
#include "train/types.h"

namespace fovea::systems::gat {

// Splits that the files give are kept. Without any, or with folds, the labelled nodes are split at
// random. If the files mark some nodes, no marked node changes its split. A missing training or
// test split then takes the labelled nodes without a mark; if both are missing, these are split at
// random.
data::Splits parts_of(const data::CitationGraph& graph, const Source& source);

}  // namespace fovea::systems::gat
