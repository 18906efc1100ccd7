// A row's width as heads side by side, and back.
#pragma once

#include <ATen/ATen.h>

namespace fovea::nn {

// [B, L, H E] -> [B, H, L, E]: a view, the head's slice of each row, not a slice of positions.
inline at::Tensor split_heads(const at::Tensor& x, int64_t heads) {
  return x.unflatten(-1, {heads, x.size(-1) / heads}).transpose(1, 2);
}
inline at::Tensor join_heads(const at::Tensor& x) { return x.transpose(1, 2).flatten(2); }

}  // namespace fovea::nn
