// alpha of entmax as it is used.
#pragma once

#include <cstdint>
#include <limits>

namespace fovea::engine {

// Half of the digits.
template <class T>
inline constexpr T least_entmax_factor = T(1) /
                                         (int64_t{1} << (std::numeric_limits<T>::digits / 2));

// alpha - 1; 0 means softmax, the limit at alpha = 1. It is 0 below 1 too, because training may push
// alpha there and must find its way back. And it is 0 just above 1, where the rounding of the power
// 1 / (alpha - 1) is a larger error than taking the limit.
template <class T>
T entmax_factor(T alpha) {
  return alpha - 1 < least_entmax_factor<T> ? T(0) : alpha - 1;
}

}  // namespace fovea::engine
