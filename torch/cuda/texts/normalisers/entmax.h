// a = max(0, (alpha - 1) e - tau)^(1 / (alpha - 1)): Peters et al. 2019, Correia et al. 2019.
// At alpha = 1 and below softmax, the limit. kTrained: alpha has a gradient.
#pragma once

namespace fovea::cuda {

template <bool kTrained>
struct EntmaxOf : ThresholdNormaliser {
  static constexpr bool kParameter = kTrained, kAlpha = kTrained;
  static constexpr Delta kDelta = Delta::kFold;
  static constexpr bool kReaches = true;

  // alpha - 1, or 0 for the limit (engine::entmax_factor).
  static T factor_of(const Arguments& a, int head) {
    constexpr T least = T(1) / (1LL << (sizeof(T) == 8 ? 26 : 12));
    const T factor = (kTrained ? head_number(a, head) : static_cast<T>(a.alpha)) - 1;
    return factor < least ? T(0) : factor;
  }
  static T reach(const Arguments& a, int head) { return 1 / factor_of(a, head); }
  static T raised(T x, T factor) {  // x^(1 / factor) of x > 0
    if (factor == 1) return x;
    return factor == T(0.5) ? x * x : to_the_power(x, 1 / factor);
  }

  static T rise(T weight, T above, T factor) {
    return factor == T(0.5) ? above : weight * reciprocal(above);
  }
  static Row rooted(T top, T sum, T tau) { return {top, 1 / sum, tau, kSeen}; }
  static T lowest(const Arguments& a, int head, const Row& row) {
    return row.shift + row.threshold / factor_of(a, head);
  }

  static Row solve(const Arguments& a, int head, const T* scores, int count, unsigned long long,
                   int, T*) {
    const T top = largest_score(scores, count), factor = factor_of(a, head);
    if (top == -infinity_of(T())) return {0, 0, 0, kEmpty};
    const auto all = [](T, int) { return true; };
    if (factor == 0) return {top, 1 / sum_of_powers(scores, count, top, all), 0, kSeen};
    Root root;
    T sum = 0;
    for (int step = 0; step < kRootSteps; ++step) {
      T slope = 0;
      sum = 0;
      each_score(scores, count, [&](T e, int) {
        const T above = factor * (e - top) - root.tau;
        if (above > 0) {
          const T weight = raised(above, factor);
          sum += weight;
          slope += rise(weight, above, factor);
        }
      });
      sum = lanes_sum(sum);
      slope = lanes_sum(slope) / factor;
      if (!root.step(sum, slope)) break;
    }
    return rooted(top, sum, root.tau);
  }
  static T weight(const Arguments& a, int head, T e, const Row& row, int) {
    const T factor = factor_of(a, head);
    if (factor == 0) return exponential(e - row.shift) * row.scale;
    const T above = factor * (e - row.shift) - row.threshold;
    return above > 0 ? raised(above, factor) * row.scale : T(0);
  }
  // g = a^(2 - alpha) on the support: de = g (da - sum g da / sum g).
  static T fold_weight(const Arguments& a, int head, T weight) {
    if (!(weight > 0)) return 0;
    const T factor = factor_of(a, head);
    if (factor == 1) return 1;
    return factor == T(0.5) ? root(weight) : to_the_power(weight, 1 - factor);
  }
  static T gradient(const Arguments& a, int head, T weight, T da, T, const Row&, T delta, T) {
    return weight > 0 ? fold_weight(a, head, weight) * (da - delta) : T(0);
  }
  // d a / d alpha of one weight, given the sums of g, -a log a and a log^2 a over the row.
  static T alpha_slope(const Arguments& a, int head, T weight, T g_sum, T entropy, T squares) {
    if (!(weight > 0)) return 0;
    const T factor = factor_of(a, head), log = logarithm(weight);
    if (factor == 0) return weight * (squares - log * log) / 2;
    const T skewed = fold_weight(a, head, weight) / g_sum;
    return (weight - skewed) / (factor * factor) - (weight * log + skewed * entropy) / factor;
  }
};
using Entmax = EntmaxOf<false>;
using EntmaxTrained = EntmaxOf<true>;

}  // namespace fovea::cuda
