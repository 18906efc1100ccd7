// a = 1 / |N(i)|
#pragma once

namespace fovea::cuda {

struct Uniform : PlainNormaliser {
  static constexpr bool kLooks = false;
  static T power(T, T) { return 1; }
  static Row finish(const Arguments&, int, T, T, T seen) { return {0, 1 / seen, 0, kSeen}; }
  static T weight(const Arguments&, int, T, const Row& row, int) { return row.scale; }
  static T gradient(const Arguments&, int, T, T, T, const Row&, T, T) { return 0; }
};

}  // namespace fovea::cuda
