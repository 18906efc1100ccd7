// e' = cap tanh(e / cap) = cap (1 - 2 r), r = 1 / (1 + exp(2 e / cap)); its derivative is 4 r (1 - r).
// number: cap.
#pragma once

namespace fovea::cuda {

struct SoftCap : PlainModifier {
  static constexpr bool kLooksBack = true;
  static T rest(T cap, T e) {
    if constexpr (sizeof(T) == 8) return (1 - hyperbolic_tangent(e / cap)) / 2;
    return reciprocal(1 + power_of_two(e * (T(2 * kLog2OfE) / cap)));
  }
  static T value(const Change& change, const Place&, T e) {
    const T cap = static_cast<T>(change.number);
    return cap - 2 * cap * rest(cap, e);
  }
  static T backward(const Change& change, const Place&, T e, T de) {
    const T r = rest(static_cast<T>(change.number), e);
    return de * (4 * r * (1 - r));
  }
};

}  // namespace fovea::cuda
