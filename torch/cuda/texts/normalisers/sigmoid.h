// a = 1 / (1 + exp(-e))
#pragma once

namespace fovea::cuda {

struct Sigmoid : PlainNormaliser {
  static T power(T e, T) { return logistic(e); }
  static T power_at(T x, T unit, T base) { return logistic(x * unit - base); }
  static T gradient_at(T weight, T da, T) { return da * weight * (1 - weight); }
  static Row finish(const Arguments&, int, T, T, T) { return {0, 1, 0, kSeen}; }
  static T weight(const Arguments&, int, T e, const Row&, int) { return logistic(e); }
  static T gradient(const Arguments&, int, T weight, T da, T e, const Row&, T, T) {
    return da * weight * logistic(-e);
  }
};

}  // namespace fovea::cuda
