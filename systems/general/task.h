// The general form f(Q, K, V): any score, any normaliser, on a task whose answer is known.
//
// A memory holds m key-value pairs; n queries each ask, with a noisy copy of one key, for that
// key's value. Whatever the choice of score and normaliser, the right weight is on the pair asked
// for: that is the hit rate. m and n differ from item to item, value and key widths differ, and |K|
// = |V| is required while |Q| is free.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::general {

std::unique_ptr<Task> make_general(const RunOptions& run_options);

}  // namespace fovea::systems::general
