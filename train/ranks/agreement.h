// Ranks that would train different things are refused before they begin.
#pragma once

#include <torch/types.h>

#include "train/ranks/ranks.h"
#include "train/types.h"

namespace fovea::train {

// Every rank gives its facts, an object. UsageError, on all ranks alike, names the first fact in which a
// rank differs from rank 0, with both values.
void agree(Ranks& ranks, const Json& facts);

// What makes two programs compute the same: version, libtorch, vector instructions.
Json facts_of_program();
// The same, and to the same bits, with the products of that device.
Json facts_of_bits(torch::Device device);

}  // namespace fovea::train
