// Views of the caller's memory.
#include "engine/call/view.h"

#include <bit>

#include "fovea/engine.h"

namespace fovea::engine {

View View::of(void* data, DType dtype, std::initializer_list<int64_t> size) {
  View view;
  if (size.size() > view.size.size()) {
    throw InvalidArgument("size: " + std::to_string(size.size()) +
                          " dimensions, expected at most " + std::to_string(view.size.size()));
  }
  view.data = data;
  view.dtype = dtype;
  view.rank = static_cast<int>(size.size());
  int d = 0;
  for (int64_t extent : size) view.size[d++] = extent;
  int64_t stride = 1;
  while (d-- > 0) {
    view.stride[d] = stride;
    stride *= view.size[d];
  }
  return view;
}

std::string name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kFloat16:
      return "float16";
    case DType::kInt32:
      return "int32";
    case DType::kBool:
      return "bool";
  }
  return "unknown type " + std::to_string(static_cast<int>(dtype));
}

size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kBFloat16:
    case DType::kFloat16:
      return 2;
    case DType::kBool:
      return 1;
  }
  return 0;
}

std::string shape_of(const View& view) {
  std::string text = "[";
  for (int d = 0; d < view.rank; ++d) text += (d ? ", " : "") + std::to_string(view.size[d]);
  return text + "]";
}

std::string ArgumentName::text() const {
  std::string text = words_;
  if (index_ >= 0) text.append("[").append(std::to_string(index_)).append("]");
  return text;
}

View broadcast_to(const View& view, const std::array<int64_t, 4>& shape, const ArgumentName& name) {
  View out = view;
  out.rank = 4;
  for (int d = 0; d < 4; ++d) {
    const int from = d - (4 - view.rank);
    const int64_t size = from < 0 ? 1 : view.size[from];
    if (size != 1 && size != shape[d]) {
      View wanted;
      wanted.rank = 4;
      wanted.size = shape;
      throw InvalidArgument(name + ": shape " + shape_of(view) + ", expected a broadcast of " +
                            shape_of(wanted));
    }
    out.size[d] = shape[d];
    out.stride[d] = size == 1 ? 0 : view.stride[from];
  }
  return out;
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 31, mantissa = half & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float tiny = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -tiny : tiny;
}

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x47800000)
    return sign | 0x7c00;        // 65536 and more; 65520 to 65535 round up below
  if (magnitude < 0x38800000) {  // subnormal: let float addition round to its last place
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000);
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23);
  return sign | static_cast<uint16_t>(rounded >> 13);
}

template <class T>
T read(const View& view, int64_t a, int64_t b, int64_t c, int64_t d) {
  switch (view.dtype) {
    case DType::kFloat32:
      return static_cast<T>(element<float>(view, a, b, c, d));
    case DType::kFloat64:
      return static_cast<T>(element<double>(view, a, b, c, d));
    case DType::kBFloat16:
      return static_cast<T>(bfloat_to_float(element<uint16_t>(view, a, b, c, d)));
    case DType::kFloat16:
      return static_cast<T>(half_to_float(element<uint16_t>(view, a, b, c, d)));
    case DType::kInt32:
      return static_cast<T>(element<int32_t>(view, a, b, c, d));
    case DType::kBool:
      return static_cast<T>(element<uint8_t>(view, a, b, c, d) != 0);
  }
  return 0;
}
template float read<float>(const View&, int64_t, int64_t, int64_t, int64_t);
template double read<double>(const View&, int64_t, int64_t, int64_t, int64_t);

}  // namespace fovea::engine
