// alpha of entmax as it is used.
#pragma once

#include <cstdint>
#include <limits>

namespace fovea::engine {

// Half of the digits.
template <class T>
inline constexpr T least_entmax_factor = T(1) /
                                         (int64_t{1} << (std::numeric_limits<T>::digits / 2));

// alpha - 1, or 0 for softmax, the limit: at 1, below it (a trained alpha may be pushed there, and
// must find its way back), and so close above it that rounding in the power 1 / (alpha - 1) would
// cost more than the limit's difference.
template <class T>
T entmax_factor(T alpha) {
  return alpha - 1 < least_entmax_factor<T> ? T(0) : alpha - 1;
}

}  // namespace fovea::engine
