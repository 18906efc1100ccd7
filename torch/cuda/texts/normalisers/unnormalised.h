// a = e
#pragma once

namespace fovea::cuda {

struct Unnormalised : PlainNormaliser {
  static T power(T e, T) { return e; }
  static Row finish(const Arguments&, int, T, T, T) { return {0, 1, 0, kSeen}; }
  static T weight(const Arguments&, int, T e, const Row&, int) { return e; }
  static T gradient(const Arguments&, int, T, T da, T, const Row&, T, T) { return da; }
};

}  // namespace fovea::cuda
