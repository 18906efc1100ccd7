// Which nodes are learnt from, and which are judged.
#pragma once

#include "data/formats/graph.h"
#include "train/types.h"

namespace fovea::systems::gat {

// The parts that the files give are kept. Without any, or with folds, the labelled nodes are split
// at random. With some, no marked node changes its part: what is missing of training and test is
// the labelled nodes without a mark, or, where both are missing, a random split of these.
data::Splits parts_of(const data::CitationGraph& graph, const Source& source);

}  // namespace fovea::systems::gat
