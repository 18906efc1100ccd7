// Scores of pairs: one function for each score and each modifier, written from their definitions.
#include <cmath>
#include <limits>
#include <numbers>

#include "engine/call/facts.h"
#include "torch/composed/block.h"
#include "torch/composed/custom.h"
#include "torch/composed/kernels.h"

namespace fovea::composed {
namespace {

double scale_of(const Dot& dot, const Block& block) {
  return engine::dot_scale(dot, block.query.size(-1));
}

// [E] or [H, E] to the rows of pairs, [1 or H, 1, 1, E].
at::Tensor row_weights(const at::Tensor& weight) {
  return at::atleast_2d(weight).unsqueeze(1).unsqueeze(1);
}

at::Tensor score(const Dot& dot, const Block& block, Face) {
  return inner_products(block.query, block.key) * scale_of(dot, block);
}

at::Tensor score(const Bilinear& bilinear, const Block& block, Face) {
  return inner_products(at::matmul(block.query, bilinear.weight), block.key) *
         bilinear.scale.value_or(1);
}

at::Tensor score(const Additive& additive, const Block& block, Face) {
  const at::Tensor sum = pair_rows(block.query, block.key, 1);
  const at::Tensor hidden = additive.activation == Activation::kTanh
                                ? sum.tanh()
                                : at::leaky_relu(sum, additive.negative_slope);
  return (hidden * row_weights(additive.weight)).sum(-1);
}

at::Tensor score(const GatedAdditive& gated, const Block& block, Face) {
  const auto halves = pair_rows(block.query, block.key, 1).chunk(2, -1);
  return (halves[0].tanh() * halves[1].sigmoid() * row_weights(gated.weight)).sum(-1);
}

at::Tensor score(const Kernel& kernel, const Block& block, Face face) {
  const bool full = kernel.metric.defined() && kernel.metric.dim() == 2;
  const auto transform = [&](const at::Tensor& x) {
    if (!kernel.metric.defined()) return x;
    return full ? at::matmul(x, kernel.metric.t()) : x * kernel.metric;
  };
  const at::Tensor difference = pair_rows(transform(block.query), transform(block.key), -1);
  const at::Tensor squared =
      difference.square().sum(-1) / at_queries(kernel.bandwidth, block).square();
  return face == Face::kValue ? kernel_value(kernel.name, squared)
                              : kernel_log(kernel.name, squared);
}

at::Tensor score(const Cosine& cosine, const Block& block, Face) {
  const auto unit = [](const at::Tensor& x) {
    const at::Tensor norm = safe_sqrt(x.square().sum(-1, /*keepdim=*/true));
    return x / at::where(norm > 0, norm, 1.0);
  };
  const at::Tensor value = inner_products(unit(block.query), unit(block.key));
  return cosine.beta.defined() ? value * at_heads(cosine.beta) : value;
}

at::Tensor score(const RankOne& rank_one, const Block& block, Face) {
  const at::Tensor key = block.own_keys() ? block.key.squeeze(-1) : block.key.transpose(-1, -2);
  return at::leaky_relu(block.query + key, rank_one.negative_slope);
}

at::Tensor score(const Location&, const Block& block, Face) {
  const at::Tensor row =
      block.own_keys()
          ? block.query.gather(
                -1, block.j.clamp_min(0).expand(
                        {block.query.size(0), block.query.size(1), block.count, block.columns()}))
          : block.query.narrow(-1, 0, block.columns());
  return at::where(block.allowed, row, 0.0);
}

at::Tensor score(const Constant&, const Block& block, Face) {
  return at::ones({block.query.size(0), block.query.size(1), block.count, block.columns()},
                  block.query.options());
}

// Which row of a table of relative positions a pair meets, [l, S] or [B, 1, l, S].
at::Tensor relative_index(const Relative& relative, const Block& block) {
  return (block.j - block.position).clamp(-relative.clip, relative.clip) + relative.clip;
}
at::Tensor expand_pairs(const at::Tensor& index, const Block& block) {
  return index.expand({block.query.size(0), block.query.size(1), block.count, block.columns()});
}

at::Tensor modify(const Relative& relative, const at::Tensor& scores, const Block& block,
                  const Score& score) {
  const auto* dot = std::get_if<Dot>(&score.kind);
  if (!dot) throw Unsupported("relative: relative positions are defined on a dot score only");
  if (!relative.key_table.defined()) return scores;
  const at::Tensor to_table =
      at::matmul(block.query, relative.key_table.t()) * scale_of(*dot, block);
  return scores + to_table.gather(-1, expand_pairs(relative_index(relative, block), block));
}

// A pair that its score masks (-infinity, outside of a kernel) stays masked, whatever f makes of it.
template <class Function>
at::Tensor still_masked(const at::Tensor& scores, const Function& f) {
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  const at::Tensor masked = scores == lowest;
  return at::where(masked, lowest, f(at::where(masked, 0.0, scores)));
}

at::Tensor modify(const SoftCap& soft_cap, const at::Tensor& scores, const Block&, const Score&) {
  return still_masked(
      scores, [&](const at::Tensor& e) { return (e / soft_cap.cap).tanh() * soft_cap.cap; });
}

at::Tensor modify(const Bias& bias, const at::Tensor& scores, const Block& block, const Score&) {
  return scores + at_pairs(bias.bias, block);
}

at::Tensor modify(const EdgeBias& edge_bias, const at::Tensor& scores, const Block& block,
                  const Score&) {
  if (block.edge.numel() == 0) return scores;
  const at::Tensor each = edge_bias.bias.index({block.edge});  // [l, S] or [l, S, H]
  return scores + (each.dim() == 2 ? each : each.permute({2, 0, 1}));
}

at::Tensor modify(const Alibi& alibi, const at::Tensor& scores, const Block& block, const Score&) {
  return scores - at_heads(alibi.slopes) * (block.position - block.j).abs();
}

at::Tensor modify(const Custom& custom, const at::Tensor& scores, const Block& block,
                  const Score&) {
  return still_masked(scores, [&](const at::Tensor& e) { return apply_custom(custom, e, block); });
}

}  // namespace

Face face_of(const Choices& choices) {
  if (std::holds_alternative<Unnormalised>(choices.normaliser)) return Face::kValue;
  if (!std::holds_alternative<KernelRatio>(choices.normaliser)) return Face::kLog;
  const auto* kernel = std::get_if<Kernel>(&choices.score.kind);
  const bool positive =
      kernel && kernel->name < KernelName::kBox && kernel->name != KernelName::kSilverman;
  return positive && choices.score.modifiers.empty() ? Face::kLog : Face::kValue;
}

at::Tensor scores(const Score& whole, const Block& block, Face face) {
  at::Tensor result =
      std::visit([&](const auto& kind) { return score(kind, block, face); }, whole.kind);
  for (const auto& modifier : whole.modifiers) {
    result = std::visit([&](const auto& m) { return modify(m, result, block, whole); }, modifier);
  }
  return result;
}

at::Tensor relative_values(const Score& whole, const Block& block, const at::Tensor& weights) {
  at::Tensor sum;
  for (const auto& modifier : whole.modifiers) {
    const auto* relative = std::get_if<Relative>(&modifier);
    if (!relative || !relative->value_table.defined()) continue;
    const at::Tensor index = expand_pairs(relative_index(*relative, block), block);
    auto sizes = weights.sizes().vec();
    sizes.back() = relative->value_table.size(0);
    const at::Tensor term = at::matmul(
        at::zeros(sizes, weights.options()).scatter_add(-1, index, weights), relative->value_table);
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

}  // namespace fovea::composed
