// e = w' f(q + k): Bahdanau et al. 2015 with tanh; leaky ReLU makes it GATv2's. scale: the slope.
#pragma once

namespace fovea::cuda {

template <bool kTanh>
struct AdditiveOf : ProductScore {
  static constexpr bool kWeighted = true, kOwn = true;
  // tanh(q + k) = 1 - 2 / (1 + exp(2 q) exp(2 k)): an exponential for each number, none for a pair.
  static constexpr bool kFactored = kTanh && sizeof(T) == 4;
  static T factor(T x) { return power_of_two(T(2 * kLog2OfE) * x); }
  static T activation(T x, T slope) {
    if constexpr (kTanh) return hyperbolic_tangent(x);
    return x > 0 ? x : slope * x;
  }
  static T derivative(T x, T slope) {
    if constexpr (kTanh) {
      const T t = hyperbolic_tangent(x);
      return 1 - t * t;
    }
    return x > 0 ? T(1) : slope;
  }
  static constexpr T kSlope = kAdditiveSlope;
  static T step(T sum, const T* q, const T* k, T w) {
    return sum + w * activation(q[0] + k[0], kSlope);
  }
  static T finish(const Arguments&, T sum, T) { return sum; }
  static T slope(const Arguments&, T, T, T de) { return de; }
  // The weight is multiplied in at the end.
  static void query_terms(T g, const T* q, const T* k, T* sums) {
    sums[0] += g * derivative(q[0] + k[0], kSlope);
  }
  static void key_terms(T g, const T* q, const T* k, T* sums) { query_terms(g, q, k, sums); }
  static T weight_term(T g, const T* q, const T* k) { return g * activation(q[0] + k[0], kSlope); }
};
using Additive = AdditiveOf<true>;
using AdditiveLeakyRelu = AdditiveOf<false>;

}  // namespace fovea::cuda
