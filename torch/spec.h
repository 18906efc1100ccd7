// Choices as text:
// "additive:weight=@,activation=tanh|soft_cap:cap=30;entmax:alpha=1.5;causal&window:left=#".
//
// One grammar for the operators' arguments, the command line and messages. In an operator's argument
// a tensor is written @ and a whole number may be written #: each stands for the next entry of a
// list, in the order of the fields. On the command line a tensor is a file. torch/choice_text.h has
// the grammar.
//
// An operator's schema has no type for choices: it holds strings, numbers, tensors and lists of
// these. Autocast, vmap, torch.func, tracing and saved graphs see a call only through the schema, so a
// C++ object passed beside it would be lost or out of date there. So a C++ call passes a text too, as
// a key: a thread writes it when it first meets these choices, stores them under it, and finds both
// again at the next call. Every thread finds what another one has stored (256 texts are kept), so only
// a text from elsewhere (Python, a saved graph) is parsed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/SymIntArrayRef.h>

#include "fovea/attend.h"
#include "torch/choice_text.h"

namespace fovea {

struct Flat {
  std::shared_ptr<const std::string> text;
  std::vector<at::Tensor> arrays;
};
Flat flatten(Choices choices);
// A number that is symbolic, in a trace, reads as 0.
Choices unflatten(std::string_view text, at::TensorList arrays, c10::SymIntArrayRef numbers);
// How many texts had to be parsed so far, for tests.
int64_t texts_parsed();

// From the text of a field that holds a tensor to the tensor.
using Resolve = std::function<at::Tensor(std::string_view field, std::string_view text)>;
// "dot|bias:bias=b.npy", "entmax:alpha=1.5", "causal&window:left=8".
Score parse_score(std::string_view text, const Resolve& resolve);
Normaliser parse_normaliser(std::string_view text, const Resolve& resolve);
Structure parse_structure(std::string_view text, const Resolve& resolve);

}  // namespace fovea
