// Query, key, value and the gradient of the output of a row, and the usual ways to run them.
#pragma once

#include "bench/rows/row.h"
#include "fovea/attend.h"

namespace fovea::bench {

struct Operands {
  at::Tensor query, key, value, gradient;

  explicit Operands(const Shape& shape);
  Operands to(at::ScalarType type) const;

  using Attention = at::Tensor (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&);
  Contender ours(Pass pass, const Choices& choices, const std::string& name = "fovea") const;
  // `more`: leaves besides query, key and value whose gradient the run computes.
  Contender ours_with(Pass pass, const Choices& choices, const Tensors& more) const;
  Contender peer(Pass pass, const std::string& name, Attention attention) const;
  Contender peer_with(Pass pass, const std::string& name, const Tensors& more,
                      std::function<at::Tensor(const Operands&)> attention) const;
};

// "dot/2048/dense/forward"
std::string row_name(const std::string& mechanism, const std::string& size,
                     const std::string& variant, Pass pass);
double tensor_bytes(const Shape& shape, int64_t element = 4);

}  // namespace fovea::bench
