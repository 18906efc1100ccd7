// The general form f(Q, K, V): any score, any normaliser, on a task whose answer is known.
//
// A memory holds m key-value pairs. Each of n queries is a noisy copy of one key, and its answer is
// that key's value. The hit rate is the share of queries whose largest weight is on that pair,
// whatever the score and the normaliser. m and n differ from item to item, and keys and values differ
// in width. |K| = |V| is required, |Q| is free.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::general {

std::unique_ptr<Task> make_general(const RunOptions& run_options);

}  // namespace fovea::systems::general
