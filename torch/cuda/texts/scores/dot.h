// e = scale q.k
#pragma once

namespace fovea::cuda {

struct Dot : ProductScore {
  static T step(T sum, const T* q, const T* k, T) { return sum + q[0] * k[0]; }
  static T finish(const Arguments& a, T sum, T) { return static_cast<T>(a.scale) * sum; }
  static T slope(const Arguments& a, T, T, T de) { return static_cast<T>(a.scale) * de; }
  static void query_terms(T g, const T*, const T* k, T* sums) { sums[0] += g * k[0]; }
  static void key_terms(T g, const T* q, const T*, T* sums) { sums[0] += g * q[0]; }
};

}  // namespace fovea::cuda
