// Normalisers that need all scores of a row: keys go round once for the largest scores, from which the
// weights follow, and again with the values.
#pragma once

#include "torch/ranks/streaming.h"

namespace fovea::over_ranks {

// Sparsemax, Entmax, TopK or Hard.
bool needs_two_passes(const Normaliser& normaliser);
// InvalidArgument for what the two passes cannot do.
void check_two_passes(const Tensor& query, const Choices& choices);
Tensor attend_in_two_passes(const Tensor& query, const Tensor& key, const Tensor& value,
                            const Choices& choices, const PlanPointer& plan, int64_t candidates);

}  // namespace fovea::over_ranks
