// Reading views: element access, names for messages, broadcasting.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "fovea/engine.h"

namespace fovea::engine {

std::string name_of(DType dtype);
size_t size_of(DType dtype);
std::string shape_of(const View& view);  // "[2, 8, 64]"

// The type arithmetic is done in: float64 for float64, float32 for the rest.
inline bool is_double(DType storage) { return storage == DType::kFloat64; }
inline DType arithmetic_of(DType storage) {
  return is_double(storage) ? DType::kFloat64 : DType::kFloat32;
}
template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::kFloat32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::kFloat64;
}
// body.operator()<T>() with T that type.
template <class Body>
decltype(auto) visit_arithmetic(DType storage, const Body& body) {
  return is_double(storage) ? body.template operator()<double>()
                            : body.template operator()<float>();
}

float half_to_float(uint16_t half);
uint16_t float_to_half(float value);
inline float bfloat_to_float(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}
// To nearest, ties to even.
inline uint16_t float_to_bfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

// The name of an argument in a message; the text is built only for a message.
class ArgumentName {
 public:
  ArgumentName(const char* words) : words_(words) {}
  ArgumentName(const char* words, size_t index)
      : words_(words), index_(static_cast<ptrdiff_t>(index)) {}
  std::string text() const;  // "heads", "modifiers[1]"

 private:
  const char* words_;
  ptrdiff_t index_ = -1;
};
inline std::string operator+(const ArgumentName& name, const std::string& rest) {
  return name.text() + rest;
}

// `view` seen as `shape`, right-aligned, missing and single dimensions repeated (stride 0). Throws
// InvalidArgument naming `name` where that is not possible.
View broadcast_to(const View& view, const std::array<int64_t, 4>& shape, const ArgumentName& name);

template <class T>
T& element(const View& view, int64_t a, int64_t b = 0, int64_t c = 0, int64_t d = 0) {
  return static_cast<T*>(
      view.data)[a * view.stride[0] + b * view.stride[1] + c * view.stride[2] + d * view.stride[3]];
}

// Element of a floating-point array of any type as T (parameters may come in the storage type).
template <class T>
T read(const View& view, int64_t a, int64_t b = 0, int64_t c = 0, int64_t d = 0);

}  // namespace fovea::engine
