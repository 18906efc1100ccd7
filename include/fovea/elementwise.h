// A user's own function of scores: two callables of (score, position) become a modifier. The loop
// over the scores is here.
//
//   const auto decay = fovea::elementwise(
//       [](auto score, const fovea::RowPosition& at) {
//         return score - 0.1f * (at.query - at.key);
//       },
//       [](auto, const fovea::RowPosition&) { return 1.0f; });
//   problem.score = fovea::engine::Score(fovea::engine::Dot{}).custom(decay);
//
// Both are called with float and with double scores and must be safe to call from several threads.
// If they have no branches and no library calls, the compiler vectorises them with the loop.
//
// For tensors on CUDA the same is said once more, as C++ expressions of `score`, `batch`, `head`,
// `query`, `key` and `infinity`, which are compiled into the kernels:
//
//   const auto there = fovea::elementwise(...).on_device("score - 0.1f * (query - key)", "1");
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "fovea/choices.h"

namespace fovea {

using choice::RowPosition;

// Holds the callables; it must outlive every use of the modifier made from it.
template <class Value, class Derivative>
class Elementwise {
 public:
  Elementwise(Value value, Derivative derivative)
      : value_(std::move(value)), derivative_(std::move(derivative)) {}

  // -infinity as a value hides the pair: "key % 3 ? score : -infinity", "1".
  Elementwise on_device(std::string value, std::string derivative) && {
    device_value_ = std::move(value);
    device_derivative_ = std::move(derivative);
    return std::move(*this);
  }

  template <class Array>
  operator choice::Custom<Array>() const& {
    return {.value_f32 = &run_value<float>,
            .derivative_f32 = &run_derivative<float>,
            .value_f64 = &run_value<double>,
            .derivative_f64 = &run_derivative<double>,
            .context = this,
            .device_value = device_value_.empty() ? nullptr : device_value_.c_str(),
            .device_derivative = device_derivative_.empty() ? nullptr : device_derivative_.c_str()};
  }
  template <class Array>
  operator choice::Custom<Array>() const&& = delete;  // keep the Elementwise in a variable

 private:
  template <class T>
  static void run_value(const void* context, T* scores, size_t n, RowPosition at) {
    const auto& self = *static_cast<const Elementwise*>(context);
    const int64_t first = at.key;
    for (size_t k = 0; k < n; ++k) {
      at.key = first + static_cast<int64_t>(k);
      scores[k] = static_cast<T>(self.value_(scores[k], std::as_const(at)));
    }
  }
  template <class T>
  static void run_derivative(const void* context, const T* scores, T* gradient, size_t n,
                             RowPosition at) {
    const auto& self = *static_cast<const Elementwise*>(context);
    const int64_t first = at.key;
    for (size_t k = 0; k < n; ++k) {
      at.key = first + static_cast<int64_t>(k);
      gradient[k] *= static_cast<T>(self.derivative_(scores[k], std::as_const(at)));
    }
  }

  Value value_;
  Derivative derivative_;
  std::string device_value_, device_derivative_;
};

// `value(score, position)` replaces a score; `derivative(score, position)` is d value / d score at
// the score before the function.
template <class Value, class Derivative>
Elementwise<Value, Derivative> elementwise(Value value, Derivative derivative) {
  return {std::move(value), std::move(derivative)};
}

}  // namespace fovea
