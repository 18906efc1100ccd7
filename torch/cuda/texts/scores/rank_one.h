// e = LeakyReLU(q + k), width 1. scale: the slope.
#pragma once

namespace fovea::cuda {

struct RankOne : ProductScore {
  static T step(T sum, const T* q, const T* k, T) { return sum + (q[0] + k[0]); }
  static T finish(const Arguments& a, T sum, T) {
    return sum > 0 ? sum : static_cast<T>(a.scale) * sum;
  }
  static T slope(const Arguments& a, T sum, T, T de) {
    return sum > 0 ? de : static_cast<T>(a.scale) * de;
  }
  static void query_terms(T g, const T*, const T*, T* sums) { sums[0] += g; }
  static void key_terms(T g, const T*, const T*, T* sums) { sums[0] += g; }
};

}  // namespace fovea::cuda
