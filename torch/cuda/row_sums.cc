#include "torch/cuda/row_sums.h"

#include <ATen/ATen.h>

namespace fovea::cuda {
namespace {

using at::Tensor;

// The place of each packed row in an array [B, H, L] whose sizes may be 1.
Tensor places_of(const Call& call, at::IntArrayRef sizes) {
  const auto options = call.query.options().dtype(at::kLong).requires_grad(false);
  const int64_t total = call.query.size(0);
  Tensor item = at::zeros({total}, options), row = at::arange(total, options);
  if (const auto* ragged = find_structure<Ragged>(call.choices.structure)) {
    const Tensor offsets = ragged->query_offsets.to(at::kLong);
    item = at::bucketize(row, offsets.slice(0, 1), /*out_int32=*/false, /*right=*/true);
    row = row - offsets.index_select(0, item);
  }
  const auto spread = [](const Tensor& index, int64_t size) {
    return size == 1 ? at::zeros_like(index) : index;
  };
  const Tensor head = spread(at::arange(call.query.size(1), options), sizes[1]).unsqueeze(0);
  const Tensor of_item = spread(item, sizes[0]).unsqueeze(1) * sizes[1] + head;
  return (of_item * sizes[2] + spread(row, sizes[2]).unsqueeze(1)).view(-1);
}

}  // namespace

Tensor sum_rows(const Call& call, const Tensor& rows, const Tensor& parameter) {
  const bool packed = is_packed(call.choices.structure);
  const int64_t heads = call.query.size(1);
  if (parameter.dim() < 3) {
    const Tensor by_head = packed ? rows.view({-1, heads}).sum(0)
                                  : rows.view({call.query.size(0), heads, -1}).sum(kButHeads);
    return by_head.sum_to_size(parameter.sizes());
  }
  if (!packed) return rows.view({call.query.size(0), heads, -1}).sum_to_size(parameter.sizes());
  // Rows that share a place are sorted next to each other before they are added, so that the order of
  // the sum is fixed.
  const auto [places, order] =
      places_of(call, parameter.sizes()).sort(/*stable=*/true, -1, /*descending=*/false);
  return at::zeros({parameter.numel()}, rows.options())
      .index_put({places}, rows.index_select(0, order), /*accumulate=*/true)
      .view(parameter.sizes());
}

}  // namespace fovea::cuda
