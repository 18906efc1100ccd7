// Classes of the nodes of a graph, from a few labelled ones.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::gat {

std::unique_ptr<Task> make_graph_attention(const RunOptions& run_options);

}  // namespace fovea::systems::gat
