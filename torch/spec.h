// Choices as text:
// "additive:weight=@,activation=tanh|soft_cap:cap=30;entmax:alpha=1.5;causal&window:left=#".
//
// One grammar for the operators' arguments, the command line and messages. In an operator's argument
// a tensor is written @ and a whole number may be written #: each stands for the next entry of a
// list, in the order of the fields. On the command line a tensor is a file. torch/choice_text.h has
// the grammar.
//
// C++ callers write their choices as text too (attend.cc), because an operator's schema has no other
// type for them: it holds strings, numbers, tensors and lists of these. Autocast, vmap, torch.func,
// tracing and saved graphs see the call only through the schema, so a C++ object passed beside it
// would be lost or out of date there. A text is parsed once in each thread and then looked up.
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
// Parsed texts are kept and looked up. A number that is symbolic, in a trace, reads as 0.
Choices unflatten(std::string_view text, at::TensorList arrays, c10::SymIntArrayRef numbers);

// From the text of a field that holds a tensor to the tensor.
using Resolve = std::function<at::Tensor(std::string_view field, std::string_view text)>;
// "dot|bias:bias=b.npy", "entmax:alpha=1.5", "causal&window:left=8".
Score parse_score(std::string_view text, const Resolve& resolve);
Normaliser parse_normaliser(std::string_view text, const Resolve& resolve);
Structure parse_structure(std::string_view text, const Resolve& resolve);

}  // namespace fovea
