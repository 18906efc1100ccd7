#include "engine/reference/tensor.h"

#include <cmath>
#include <cstring>

namespace fovea::reference {
namespace {

double from_bfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

double from_float16(uint16_t bits) {
  const double sign = bits >> 15 ? -1 : 1;
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  if (exponent == 31) return mantissa ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

}  // namespace

double element(const engine::View& view, int64_t offset) {
  using engine::DType;
  switch (view.dtype) {
    case DType::kFloat32:
      return static_cast<const float*>(view.data)[offset];
    case DType::kFloat64:
      return static_cast<const double*>(view.data)[offset];
    case DType::kBFloat16:
      return from_bfloat16(static_cast<const uint16_t*>(view.data)[offset]);
    case DType::kFloat16:
      return from_float16(static_cast<const uint16_t*>(view.data)[offset]);
    case DType::kInt32:
      return static_cast<const int32_t*>(view.data)[offset];
    case DType::kBool:
      return static_cast<const uint8_t*>(view.data)[offset];
  }
  return std::nan("");
}

}  // namespace fovea::reference
