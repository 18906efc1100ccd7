#include "cases/storage.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/call/view.h"
#include "engine/reference/tensor.h"

namespace fovea::cases {
namespace {

using engine::DType;
using engine::View;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kPadding = 3;  // elements after each row of an interleaved view

// Round to nearest, ties to even.
uint16_t to_bfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t to_float16(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;
  int exponent;
  std::frexp(magnitude, &exponent);               // magnitude in [2^(exponent-1), 2^exponent)
  const int unit = std::max(exponent - 11, -24);  // the weight of the last bit
  const auto mantissa = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -unit)));
  // A mantissa of 2048 carries into the exponent by the same addition.
  return sign | static_cast<uint16_t>(unit == -24 ? mantissa : (unit + 24) * 1024 + mantissa);
}

}  // namespace

void Storage::set(const View& view, int64_t offset, double value) {
  switch (view.dtype) {
    case DType::kFloat32:
      static_cast<float*>(view.data)[offset] = static_cast<float>(value);
      break;
    case DType::kFloat64:
      static_cast<double*>(view.data)[offset] = value;
      break;
    case DType::kBFloat16:
      static_cast<uint16_t*>(view.data)[offset] = to_bfloat16(static_cast<float>(value));
      break;
    case DType::kFloat16:
      static_cast<uint16_t*>(view.data)[offset] = to_float16(value);
      break;
    case DType::kInt32:
      static_cast<int32_t*>(view.data)[offset] = static_cast<int32_t>(value);
      break;
    case DType::kBool:
      static_cast<uint8_t*>(view.data)[offset] = value != 0;
      break;
  }
}

double Storage::get(const View& view, int64_t offset) { return reference::element(view, offset); }

void* Storage::allocate(size_t bytes) {
  // One byte at least, so that an empty view differs from no view; no slack, so that a sanitiser
  // sees every overrun.
  blocks_.push_back(std::make_unique<std::byte[]>(std::max<size_t>(bytes, 1)));
  return blocks_.back().get();
}

View Storage::zeros(DType dtype, std::initializer_list<int64_t> size) {
  int64_t count = 1;
  for (int64_t n : size) count *= n;
  return View::of(allocate(static_cast<size_t>(count) * size_of(dtype)), dtype, size);
}

View Storage::zeros_like(const View& view, DType dtype) {
  const auto& n = view.size;
  switch (view.rank) {
    case 1:
      return zeros(dtype, {n[0]});
    case 2:
      return zeros(dtype, {n[0], n[1]});
    case 3:
      return zeros(dtype, {n[0], n[1], n[2]});
    default:
      return zeros(dtype, {n[0], n[1], n[2], n[3]});
  }
}

View Storage::floats(DType dtype, std::initializer_list<int64_t> size, double low, double high) {
  const View view = zeros(dtype, size);
  each(view, [&](int64_t offset) { set(view, offset, uniform(low, high)); });
  return view;
}

View Storage::values(DType dtype, const std::vector<double>& values) {
  const View view = zeros(dtype, {static_cast<int64_t>(values.size())});
  for (size_t n = 0; n < values.size(); ++n) set(view, static_cast<int64_t>(n), values[n]);
  return view;
}

View Storage::interleaved(DType dtype, int64_t batch, int64_t heads, int64_t length,
                          int64_t width) {
  const int64_t row = width + kPadding;
  View all = zeros(dtype, {batch * length * heads * row + 1});
  each(all, [&](int64_t offset) { set(all, offset, kNaN); });
  View view = all;
  view.data = static_cast<std::byte*>(all.data) + size_of(dtype);
  view.rank = 4;
  view.size = {batch, heads, length, width};
  view.stride = {length * heads * row, row, heads * row, 1};
  return view;
}

View Storage::interleaved_packed(DType dtype, int64_t total, int64_t heads, int64_t width) {
  View view = interleaved(dtype, 1, heads, total, width);
  view.rank = 3;
  view.size = {total, heads, width, 0};
  view.stride = {view.stride[2], view.stride[1], 1, 0};
  return view;
}

}  // namespace fovea::cases
