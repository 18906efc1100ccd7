#include "torch/cuda/reduced.h"

#include <ATen/ATen.h>

#include "engine/call/facts.h"
#include "torch/composed/block.h"
#include "torch/engine_call.h"

namespace fovea::cuda {
namespace {

using at::Tensor;

// One number per head, [1] or [H], beside rows [B, H, L, E] or (total, H, E).
Tensor beside_rows(const Tensor& numbers, const Tensor& rows) {
  return rows.dim() == 4 ? numbers.view({1, -1, 1, 1}) : numbers.view({1, -1, 1});
}

Tensor unit_rows(const Tensor& x) {
  const Tensor norm = composed::safe_sqrt(x.square().sum(-1, /*keepdim=*/true));
  return x / at::where(norm > 0, norm, 1.0);
}

// x W of every row; W [E, F] or [H, E, F]. A single W is always one product of matrices: at::matmul
// would choose by which tensors require a gradient, and the last bits would depend on that. Backward
// must compute the scores of forward again bit by bit: top-k compares them with the k-th.
Tensor times(const Tensor& x, const Tensor& weight) {
  if (weight.dim() == 2) {
    auto sizes = x.sizes().vec();
    sizes.back() = weight.size(1);
    return x.flatten(0, -2).mm(weight).view(sizes);
  }
  if (x.dim() == 4) return at::matmul(x, weight);
  return at::matmul(x.transpose(0, 1), weight).transpose(0, 1);
}

}  // namespace

const Relative* relative_of(const Call& call) {
  for (const auto& modifier : call.choices.score.modifiers) {
    if (const auto* relative = std::get_if<Relative>(&modifier)) return relative;
  }
  return nullptr;
}

Reduced reduced(const Call& call) {
  Reduced to{call.query, call.key, {}, 1};
  const auto type = arithmetic_type(call.query);
  const auto& kind = call.choices.score.kind;
  if (const auto* dot = std::get_if<Dot>(&kind)) {
    to.scale = engine::dot_scale(*dot, call.query.size(-1));
    if (const auto* relative = relative_of(call); relative && relative->key_table.defined())
      to.relative = times(call.query.to(type), relative->key_table.t()) * to.scale;
  } else if (const auto* bilinear = std::get_if<Bilinear>(&kind)) {
    to.scale = bilinear->scale.value_or(1);
    to.query = times(call.query.to(type), bilinear->weight);
    to.key = call.key.to(type);
  } else if (const auto* cosine = std::get_if<Cosine>(&kind)) {
    to.query = unit_rows(call.query.to(type));
    if (cosine->beta.defined()) to.query = to.query * beside_rows(cosine->beta, to.query);
    to.key = unit_rows(call.key.to(type));
  } else if (const auto* kernel = std::get_if<Kernel>(&kind); kernel && kernel->metric.defined()) {
    const auto stretched = [&](const Tensor& x) {
      return kernel->metric.dim() == 2 ? times(x.to(type), kernel->metric.t())
                                       : x.to(type) * kernel->metric;
    };
    to.query = stretched(call.query);
    to.key = stretched(call.key);
  } else if (const auto* rank_one = std::get_if<RankOne>(&kind)) {
    to.scale = rank_one->negative_slope;
  }
  return to;
}

}  // namespace fovea::cuda
