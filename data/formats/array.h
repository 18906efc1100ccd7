// An array as files hold it: a type, a shape, and its bytes, row by row, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fovea::data {

enum class ElementType : uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64
};

size_t size_of(ElementType type);

struct Array {
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> shape;
  std::string bytes;
};

// Bytes an array of this type and shape takes; nothing where a size is negative or the product does
// not fit 2^62.
std::optional<uint64_t> byte_count(ElementType type, const std::vector<int64_t>& shape);

}  // namespace fovea::data
