// Calls of a shape that libtorch's fused attention took before. A small call would spend more time
// on finding that out again than in the attention.
#pragma once

#include <optional>

#include "torch/operators.h"

namespace fovea::operators {

// Such a call's output, if it is plain: tensors of a device, which nothing traces, maps, converts or
// differentiates forward.
std::optional<Tensor> known_sdpa(const Tensor& query, const Tensor& key, const Tensor& value,
                                 c10::string_view choices);
// Remembers the shape, when it comes a second time. After a call that passed all checks.
void remember_sdpa(const Tensor& query, const Tensor& key, const Tensor& value,
                   c10::string_view choices);

}  // namespace fovea::operators
