#include "bench/rows/operands.h"

namespace fovea::bench {

Operands::Operands(const Shape& s)
    : query(normal({s.batch, s.heads, s.queries, s.width}, 1)),
      key(normal({s.batch, s.key_heads, s.keys, s.width}, 2)),
      value(normal({s.batch, s.key_heads, s.keys, s.value_width}, 3)),
      gradient(normal({s.batch, s.heads, s.queries, s.value_width}, 4).detach()) {}

Operands Operands::to(at::ScalarType type) const {
  Operands converted = *this;
  for (at::Tensor* tensor : {&converted.query, &converted.key, &converted.value}) {
    *tensor = tensor->detach().to(type).requires_grad_(true);
  }
  converted.gradient = gradient.to(type);
  return converted;
}

Contender Operands::ours(Pass pass, const Choices& choices, const std::string& name) const {
  Contender contender = ours_with(pass, choices, {});
  contender.name = name;
  return contender;
}

Contender Operands::ours_with(Pass pass, const Choices& choices, const Tensors& more) const {
  return peer_with(pass, "fovea", more, [choices](const Operands& x) {
    return attend(x.query, x.key, x.value, choices);
  });
}

Contender Operands::peer(Pass pass, const std::string& name, Attention attention) const {
  return peer_with(pass, name, {},
                   [attention](const Operands& x) { return attention(x.query, x.key, x.value); });
}

Contender Operands::peer_with(Pass pass, const std::string& name, const Tensors& more,
                              std::function<at::Tensor(const Operands&)> attention) const {
  Tensors leaves = {query, key, value};
  leaves.insert(leaves.end(), more.begin(), more.end());
  return {name, runner(pass, leaves, gradient,
                       [*this, attention = std::move(attention)] { return attention(*this); })};
}

std::string row_name(const std::string& mechanism, const std::string& size,
                     const std::string& variant, Pass pass) {
  return mechanism + "/" + size + "/" + variant + "/" + name(pass);
}

double tensor_bytes(const Shape& s, int64_t element) {
  return element * (s.query_size() + s.key_size() + s.value_size() + s.output_size());
}

}  // namespace fovea::bench
