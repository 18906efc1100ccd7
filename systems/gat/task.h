// Classes of the nodes of a graph, from a few labelled ones.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::gat {

std::unique_ptr<Task> make_graph_attention(const Setting& setting);

}  // namespace fovea::systems::gat
