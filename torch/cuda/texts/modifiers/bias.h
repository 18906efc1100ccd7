// e' = e + bias. array: broadcasts to [B, H, L, S].
#pragma once

namespace fovea::cuda {

struct Bias : PlainModifier {
  static constexpr bool kReads = true;
  static T value(const Change& change, const Place& p, T e) {
    return e + element<T>(change.array, p.batch, p.head, p.row, p.j);
  }
};

}  // namespace fovea::cuda
