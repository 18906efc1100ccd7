#include "data/formats/array.h"

#include <algorithm>

namespace fovea::data {

size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUInt8:
    case ElementType::kInt8:
      return 1;
    case ElementType::kInt16:
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      return 2;
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return 4;
    default:
      return 8;
  }
}

std::optional<uint64_t> byte_count(ElementType type, const std::vector<int64_t>& shape) {
  if (std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; })) return std::nullopt;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  uint64_t total = size_of(type);
  for (const int64_t n : shape) {
    if (static_cast<uint64_t>(n) > (uint64_t{1} << 62) / total) return std::nullopt;
    total *= static_cast<uint64_t>(n);
  }
  return total;
}

}  // namespace fovea::data
