// e = w' (tanh(a) sigmoid(b)), [a; b] = q + k
#pragma once

namespace fovea::cuda {

struct GatedAdditive : ProductScore {
  static constexpr int kComponents = 2;
  static constexpr bool kWeighted = true, kOwn = true;
  static T step(T sum, const T* q, const T* k, T w) {
    return sum + w * hyperbolic_tangent(q[0] + k[0]) * logistic(q[1] + k[1]);
  }
  static T finish(const Arguments&, T sum, T) { return sum; }
  static T slope(const Arguments&, T, T, T de) { return de; }
  static void query_terms(T g, const T* q, const T* k, T* sums) {
    const T t = hyperbolic_tangent(q[0] + k[0]), s = logistic(q[1] + k[1]);
    sums[0] += g * (1 - t * t) * s;
    sums[1] += g * t * s * (1 - s);
  }
  static void key_terms(T g, const T* q, const T* k, T* sums) { query_terms(g, q, k, sums); }
  static T weight_term(T g, const T* q, const T* k) {
    return g * hyperbolic_tangent(q[0] + k[0]) * logistic(q[1] + k[1]);
  }
};

}  // namespace fovea::cuda
