#include "nn/addressing.h"

#include <ATen/ATen.h>

#include "fovea/attend.h"

namespace fovea::nn {
namespace {

constexpr double kNormEpsilon = 1e-6;
// Usage is kept off zero: the allocation is a product of usages, summed here as logarithms.
constexpr double kUsageEpsilon = 1e-6;
// Below any weight that matters; log w̃ exists where w̃ is 0.
constexpr double kWeightEpsilon = 1e-16;

at::Tensor inverse_norm(const at::Tensor& x) {
  return x.square().sum(-1, /*keepdim=*/true).add(kNormEpsilon).rsqrt();
}

}  // namespace

at::Tensor unit_rows(const at::Tensor& memory) { return memory * inverse_norm(memory); }

at::Tensor content_of_units(const at::Tensor& key, const at::Tensor& strength,
                            const at::Tensor& units) {
  const int64_t batch = units.size(0), rows = units.size(1);
  // One head of the engine, as many queries as the memory has heads: they share its rows.
  const at::Tensor query = key * (strength * inverse_norm(key)),
                   identity = at::eye(rows, units.options()).expand({batch, 1, rows, rows});
  return attend(query.unsqueeze(1), units.unsqueeze(1), identity, {.score = Dot{1.0}}).squeeze(1);
}

at::Tensor content_weights(const at::Tensor& key, const at::Tensor& strength,
                           const at::Tensor& memory) {
  return content_of_units(key, strength, unit_rows(memory));
}

at::Tensor read_rows(const at::Tensor& weights, const at::Tensor& memory) {
  const at::Tensor values = memory.unsqueeze(1);
  return attend(weights.unsqueeze(1), values.detach(), values,
                {.score = Location{}, .normaliser = Unnormalised{}})
      .squeeze(1);
}

at::Tensor written(const at::Tensor& memory, const at::Tensor& weights, const at::Tensor& erase,
                   const at::Tensor& add) {
  at::Tensor kept = memory;
  for (int64_t head = 0; head < weights.size(1); ++head)
    kept = at::addcmul(kept, kept * weights.select(1, head).unsqueeze(2), erase.narrow(1, head, 1),
                       -1);
  return at::baddbmm(kept, weights.transpose(1, 2), add);
}

at::Tensor circular_shift(const at::Tensor& weights, const at::Tensor& shifts) {
  const int64_t most = shifts.size(2) / 2;
  at::Tensor out;
  for (int64_t by = -most; by <= most; ++by) {
    const at::Tensor share = shifts.narrow(2, by + most, 1),
                     moved = by == 0 ? weights : weights.roll(by, 2);
    out = out.defined() ? at::addcmul(out, moved, share) : moved * share;
  }
  return out;
}

at::Tensor sharpened(const at::Tensor& weights, const at::Tensor& gamma) {
  // As a softmax, so that a large γ leaves the largest standing and not 0 / 0.
  return (gamma * weights.add(kWeightEpsilon).log()).softmax(2);
}

at::Tensor usage_after(const at::Tensor& usage, const at::Tensor& write_weights,
                       const at::Tensor& free_gates, const at::Tensor& read_weights) {
  const at::Tensor kept = 1 - free_gates * read_weights;
  at::Tensor out = usage + (1 - usage) * write_weights;
  // Head by head: the backward of prod costs more than all of these.
  for (int64_t head = 0; head < kept.size(1); ++head) out = out * kept.select(1, head);
  return out;
}

at::Tensor allocation(const at::Tensor& usage) {
  const at::Tensor offset = usage * (1 - kUsageEpsilon) + kUsageEpsilon;
  const auto [sorted, order] = at::sort(offset, /*stable=*/true, /*dim=*/1, /*descending=*/false);
  const at::Tensor logs = sorted.log();
  const at::Tensor share = (1 - sorted) * (logs.cumsum(1) - logs).exp();
  return at::zeros_like(usage).scatter(1, order, share);
}

at::Tensor links_after(const at::Tensor& links, const at::Tensor& precedence,
                       const at::Tensor& write_weights) {
  const at::Tensor at_row = write_weights.unsqueeze(2), at_column = write_weights.unsqueeze(1);
  const at::Tensor next =
      at::addcmul(at_row * precedence.unsqueeze(1), links, 1 - at_row - at_column);
  return next * (1 - at::eye(links.size(1), links.options()));
}

at::Tensor precedence_after(const at::Tensor& precedence, const at::Tensor& write_weights) {
  return at::addcmul(write_weights, precedence, 1 - write_weights.sum(1, /*keepdim=*/true));
}

}  // namespace fovea::nn
