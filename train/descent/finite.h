// Checks for NaN and infinity: no metric, answer or file is made from such numbers.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>

namespace fovea::train {

// The tensor itself. InvalidArgument where an entry is not finite: "logits: nan for item 3, expected
// finite numbers"; rows are items.
const torch::Tensor& finite(const torch::Tensor& tensor, const std::string& what);

// The name of the first tensor with an entry that is not finite; empty: there is none.
std::string not_finite(const std::map<std::string, torch::Tensor>& tensors);

}  // namespace fovea::train
