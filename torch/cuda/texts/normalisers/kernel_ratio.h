// a = K / sum K, signed kernels allowed. A row whose sum is zero counts as empty. (Kernels that are
// positive everywhere are divided as logarithms: softmax.)
#pragma once

namespace fovea::cuda {

struct KernelRatio : PlainNormaliser {
  static constexpr Delta kDelta = Delta::kFromOutput;
  static T power(T e, T) { return e; }
  static Row finish(const Arguments&, int, T, T sum, T) {
    return {0, sum == 0 ? T(0) : 1 / sum, 0, sum == 0 ? kEmpty : kSeen};
  }
  static T weight(const Arguments&, int, T e, const Row& row, int) { return e * row.scale; }
  static T gradient(const Arguments&, int, T, T da, T, const Row& row, T delta, T) {
    return (da - delta) * row.scale;
  }
};

}  // namespace fovea::cuda
