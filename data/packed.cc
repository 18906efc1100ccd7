#include "data/packed.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "fovea/error.h"

namespace fovea::data {
namespace {

template <class T>
Packed pack(const std::vector<std::vector<T>>& rows, int64_t width, std::span<const int64_t> items,
            torch::ScalarType type) {
  torch::Tensor offsets = torch::zeros({static_cast<int64_t>(items.size()) + 1}, torch::kInt32);
  auto* ends = offsets.data_ptr<int32_t>();
  int64_t total = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto& row = rows.at(static_cast<size_t>(items[i]));
    if (static_cast<int64_t>(row.size()) % width)
      throw InvalidArgument(fmt::format("item {}: {} numbers, expected a multiple of {}", items[i],
                                        row.size(), width));
    total += static_cast<int64_t>(row.size()) / width;
    if (total > INT32_MAX) throw InvalidArgument("batch: more than 2^31 elements; make it smaller");
    ends[i + 1] = static_cast<int32_t>(total);
  }
  torch::Tensor values = width == 1 && type == torch::kInt64 ? torch::empty({total}, type)
                                                             : torch::empty({total, width}, type);
  auto* to = values.data_ptr<T>();
  for (const int64_t item : items) {
    const auto& row = rows[static_cast<size_t>(item)];
    to = std::copy(row.begin(), row.end(), to);
  }
  return {values, offsets};
}

template <class T>
torch::Tensor gathered(const std::vector<T>& values, std::span<const int64_t> items,
                       torch::ScalarType type) {
  torch::Tensor out = torch::empty({static_cast<int64_t>(items.size())}, type);
  auto* to = out.data_ptr<T>();
  for (size_t i = 0; i < items.size(); ++i) to[i] = values.at(static_cast<size_t>(items[i]));
  return out;
}

}  // namespace

Packed pack_tokens(const std::vector<std::vector<int64_t>>& rows, std::span<const int64_t> items) {
  return pack(rows, 1, items, torch::kInt64);
}
Packed pack_features(const std::vector<std::vector<float>>& rows, int64_t width,
                     std::span<const int64_t> items) {
  return pack(rows, width, items, torch::kFloat32);
}

torch::Tensor one_each(int64_t items, torch::Device device) {
  return torch::arange(items + 1, torch::dtype(torch::kInt32).device(device));
}

torch::Tensor owners(const torch::Tensor& offsets) {
  const torch::Tensor lengths = offsets.slice(0, 1) - offsets.slice(0, 0, -1);
  return torch::repeat_interleave(
      torch::arange(lengths.size(0), lengths.options().dtype(torch::kInt64)),
      lengths.to(torch::kInt64));
}

torch::Tensor gather(const std::vector<int64_t>& values, std::span<const int64_t> items) {
  return gathered(values, items, torch::kInt64);
}
torch::Tensor gather(const std::vector<float>& values, std::span<const int64_t> items) {
  return gathered(values, items, torch::kFloat32);
}

}  // namespace fovea::data
