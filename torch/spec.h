// Choices as text:
// "additive:weight=@0,activation=tanh|soft_cap:cap=30;entmax:alpha=1.5;causal&window:left=8".
//
// One grammar for the operators' schema (a tensor is @n, the n-th of a list), for the command line
// (a tensor is a file) and for messages. Everything goes through the choices' `fields`, so a new
// field needs nothing here.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/attend.h"

namespace fovea {

struct Flat {
  std::string text;
  std::vector<at::Tensor> arrays;
};
Flat flatten(const Choices& choices);
Choices unflatten(std::string_view text, at::TensorList arrays);

// From the text of a field that holds a tensor to the tensor.
using Resolve = std::function<at::Tensor(std::string_view field, std::string_view text)>;
// "dot|bias:bias=b.npy", "entmax:alpha=1.5", "causal&window:left=8".
Score parse_score(std::string_view text, const Resolve& resolve);
Normaliser parse_normaliser(std::string_view text, const Resolve& resolve);
Structure parse_structure(std::string_view text, const Resolve& resolve);

// A name that is none of those there are; the message lists them.
struct UnknownName : InvalidArgument {
  UnknownName(std::string kind, std::string typed, std::vector<std::string> names);
  std::string kind, typed;
  std::vector<std::string> names;
};

}  // namespace fovea
