// Ragged batches as tensors: items of different lengths one after another, with offsets; no
// padding.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

namespace fovea::data {

struct Packed {
  torch::Tensor values;  // [total] int64 for tokens, [total, width] float32 for features
  torch::Tensor
      offsets;  // int32 [items + 1]: item i is values[offsets[i]] … values[offsets[i + 1] - 1]
  int64_t items() const { return offsets.size(0) - 1; }
  Packed to(torch::Device device) const { return {values.to(device), offsets.to(device)}; }
};

// The chosen rows; features are flat, `width` numbers for each element.
Packed pack_tokens(const std::vector<std::vector<int64_t>>& rows, std::span<const int64_t> items);
Packed pack_features(const std::vector<std::vector<float>>& rows, int64_t width,
                     std::span<const int64_t> items);

// Offsets 0, 1, …, items: one query for each item (a learned query that looks at a bag).
torch::Tensor one_each(int64_t items, torch::Device device = torch::kCPU);
// The item each element belongs to: int64 [total].
torch::Tensor owners(const torch::Tensor& offsets);

// The chosen entries as a tensor.
torch::Tensor gather(const std::vector<int64_t>& values, std::span<const int64_t> items);
torch::Tensor gather(const std::vector<float>& values, std::span<const int64_t> items);

}  // namespace fovea::data
