// Choices as text:
// "additive:weight=@,activation=tanh|soft_cap:cap=30;entmax:alpha=1.5;causal&window:left=#".
//
// One grammar for the operators' schema (a tensor is an @ and a whole number may be a #: the next of
// a list, in the order of the fields), for the command line (a tensor is a file) and for messages.
// torch/choice_text.h has the grammar itself.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/SymIntArrayRef.h>

#include "fovea/attend.h"
#include "torch/choice_text.h"

namespace fovea {

struct Flat {
  std::string text;
  std::vector<at::Tensor> arrays;
};
Flat flatten(const Choices& choices);
// Remembers the texts it has read. A number that is symbolic, in a trace, reads as 0.
Choices unflatten(std::string_view text, at::TensorList arrays, c10::SymIntArrayRef numbers);

// From the text of a field that holds a tensor to the tensor.
using Resolve = std::function<at::Tensor(std::string_view field, std::string_view text)>;
// "dot|bias:bias=b.npy", "entmax:alpha=1.5", "causal&window:left=8".
Score parse_score(std::string_view text, const Resolve& resolve);
Normaliser parse_normaliser(std::string_view text, const Resolve& resolve);
Structure parse_structure(std::string_view text, const Resolve& resolve);

}  // namespace fovea
