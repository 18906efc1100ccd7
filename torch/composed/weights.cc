// Some of the weights, a block of the chosen queries at a time.
#include <algorithm>

#include "torch/composed/composed.h"
#include "torch/composed/finite.h"
#include "torch/composed/pages.h"
#include "torch/composed/walk.h"

namespace fovea::composed {
namespace {

using at::Tensor;
using at::indexing::Slice;

int64_t longest(const Tensor& offsets) {
  return offsets.numel() > 1 ? offsets.diff().max().item<int64_t>() : 0;
}

// Batch items, and the largest counts of queries and keys among them.
struct Extent {
  int64_t batches, queries, keys;
};
Extent extent_of(const Call& call) {
  if (const auto* ragged = find_structure<Ragged>(call.choices.structure)) {
    return {ragged->query_offsets.size(0) - 1, longest(ragged->query_offsets),
            longest(ragged->key_offsets)};
  }
  if (is_packed(call.choices.structure)) return {1, call.query.size(0), call.key.size(0)};
  return {call.query.size(0), call.query.size(2), call.key.size(2)};
}

// Weights with a column for each key; a graph may name a key more than once.
Tensor by_key(const Tensor& weights, const Block& block, int64_t keys) {
  if (!block.gathered && block.columns() == keys) return weights;
  auto sizes = weights.sizes().vec();
  sizes.back() = keys;
  const Tensor index = block.j.clamp_min(0).expand(weights.sizes());
  return at::zeros(sizes, weights.options()).scatter_add(-1, index, weights);
}

}  // namespace

SelectedWeights weights(const Call& given, const Selection& selection) {
  const at::NoGradGuard guard;
  const Call call = in_arithmetic(out_of_pages(given));
  const Extent extent = extent_of(call);
  const auto integers = call.query.options().dtype(at::kLong);
  const Tensor rows = selection.rows.defined() ? selection.rows.to(at::kLong)
                                               : at::arange(extent.queries, integers);
  const Tensor heads = selection.heads.defined() ? selection.heads.to(at::kLong)
                                                 : at::arange(call.query.size(1), integers);
  const int64_t columns = selection.top_k > 0 ? selection.top_k : extent.keys;
  SelectedWeights result;
  if (selection.column_sums) {
    result.weights = at::zeros({extent.batches, heads.size(0), extent.keys}, call.query.options());
  } else {
    result.weights =
        at::zeros({extent.batches, heads.size(0), rows.size(0), columns}, call.query.options());
    if (selection.top_k > 0)
      result.indices = at::full(result.weights.sizes(), -1, integers.dtype(at::kInt));
  }
  FirstSpoiled first_spoiled;
  for_each_block_of(call, rows, [&](const Block& block) {
    const Weighed weighed = weigh(call, block);
    if (call.check_finite && weighed.spoiled.defined()) first_spoiled.look(block, weighed.spoiled);
    const Tensor chosen = by_key(weighed.weights.index_select(1, heads), block, extent.keys);
    const auto items = Slice(block.batch, block.batch + block.batches);
    if (selection.column_sums) {
      result.weights.index({items}).add_(chosen.sum(2));
    } else if (selection.top_k == 0) {
      result.weights.index_put_({items, Slice(), block.places}, chosen);
    } else {
      // Keys a row does not see come last, whatever the sign of its weights.
      const Tensor seen =
          by_key(block.allowed
                     .expand({block.batches, call.query.size(1), block.count, block.columns()})
                     .index_select(1, heads)
                     .to(chosen.scalar_type()),
                 block, extent.keys) > 0;
      const Tensor ranked = at::where(seen, chosen, -std::numeric_limits<double>::infinity());
      auto [values, order] = ranked.sort(/*stable=*/true, -1, /*descending=*/true);
      const int64_t kept = std::min(selection.top_k, extent.keys);
      const Tensor there = seen.gather(-1, order).narrow(-1, 0, kept);
      const auto place = {at::indexing::TensorIndex(items), at::indexing::TensorIndex(Slice()),
                          at::indexing::TensorIndex(block.places),
                          at::indexing::TensorIndex(Slice(0, kept))};
      result.weights.index_put_(place, at::where(there, values.narrow(-1, 0, kept), 0.0));
      result.indices.index_put_(place,
                                at::where(there, order.narrow(-1, 0, kept), -1).to(at::kInt));
    }
  });
  first_spoiled.check();
  return result;
}

}  // namespace fovea::composed
