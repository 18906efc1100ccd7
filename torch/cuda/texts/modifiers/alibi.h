// e' = e - slope |i - j|. array: slopes [H].
#pragma once

namespace fovea::cuda {

struct Alibi : PlainModifier {
  static T distance(const Place& p) {
    if constexpr (sizeof(T) == 8) return magnitude(static_cast<T>(p.i - p.j));
    return magnitude(p.apart);
  }
  static T value(const Change& change, const Place& p, T e) {
    return e - element<T>(change.array, 0, p.head, 0, 0) * distance(p);
  }
  static constexpr T kSlope = -1;
  static T slope(const Place& p) { return distance(p); }
};

}  // namespace fovea::cuda
