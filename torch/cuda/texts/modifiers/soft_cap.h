// e' = cap tanh(e / cap). number: cap.
#pragma once

namespace fovea::cuda {

struct SoftCap : PlainModifier {
  static T value(const Change& change, const Place&, T e) {
    const T cap = static_cast<T>(change.number);
    return cap * hyperbolic_tangent(e * (1 / cap));
  }
  static T backward(const Change& change, const Place&, T e, T de) {
    const T t = hyperbolic_tangent(e * (1 / static_cast<T>(change.number)));
    return de * (1 - t * t);
  }
};

}  // namespace fovea::cuda
