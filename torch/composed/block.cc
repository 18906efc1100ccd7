#include "torch/composed/block.h"

namespace fovea::composed {

using at::indexing::Slice;

at::Tensor at_pairs(const at::Tensor& array, const Block& block) {
  at::Tensor full = array;
  while (full.dim() < 4) full = full.unsqueeze(0);
  if (full.size(0) > 1) full = full.narrow(0, block.batch, block.batches);
  if (!block.own_keys()) {
    if (full.size(2) > 1) full = block.rows(full, 2);
    return full.size(3) > 1 ? full.narrow(3, 0, block.columns()) : full;
  }
  const at::Tensor row = full.size(2) > 1 ? block.i : at::zeros_like(block.i);
  const at::Tensor column = full.size(3) > 1 ? block.j : at::zeros_like(block.j);
  return full.index({Slice(), Slice(), row, column});
}

at::Tensor at_heads(const at::Tensor& array) { return array.reshape({1, -1, 1, 1}); }

at::Tensor at_queries(const at::Tensor& array, const Block& block) {
  if (array.dim() < 3) return at_heads(array);
  at::Tensor rows = array;
  if (rows.size(0) > 1) rows = rows.narrow(0, block.batch, block.batches);
  if (rows.size(2) > 1) rows = block.rows(rows, 2);
  return rows.unsqueeze(-1);
}

at::Tensor inner_products(const at::Tensor& query, const at::Tensor& key) {
  if (key.dim() == 5) return at::matmul(key, query.unsqueeze(-1)).squeeze(-1);
  return at::matmul(query, key.transpose(-1, -2));
}

at::Tensor pair_rows(const at::Tensor& query, const at::Tensor& key, double sign) {
  return at::add(query.unsqueeze(-2), key.dim() == 5 ? key : key.unsqueeze(-3), sign);
}

at::Tensor aggregate(const at::Tensor& weights, const at::Tensor& value) {
  if (value.dim() == 5) return at::matmul(weights.unsqueeze(-2), value).squeeze(-2);
  return at::matmul(weights, value);
}

at::Tensor safe_sqrt(const at::Tensor& x) {
  const at::Tensor positive = x > 0;
  return at::where(positive, at::where(positive, x, 1.0).sqrt(), 0.0);
}

}  // namespace fovea::composed
