// a = max(0, e - tau), the projection onto the simplex. Martins & Astudillo 2016; tau by Michelot's
// iteration from below, which ends after as many steps as the support shrinks.
#pragma once

namespace fovea::cuda {

struct Sparsemax : ThresholdNormaliser {
  static constexpr Delta kDelta = Delta::kFold;
  static constexpr bool kReaches = true;
  static T reach(const Arguments&, int) { return 1; }
  static Row solve(const Arguments&, int, const T* scores, int count, unsigned long long, int, T*) {
    const T top = largest_score(scores, count);
    if (top == -infinity_of(T())) return {0, 0, 0, kEmpty};
    T tau = -1;
    for (int support = 0;;) {
      T sum = 0;
      int above = 0;
      each_score(scores, count, [&](T e, int) {
        if (e - top > tau) sum += e - top, ++above;
      });
      sum = lanes_sum(sum);
      above = lanes_sum(above);
      if (above == support) break;
      support = above;
      tau = (sum - 1) / static_cast<T>(above);
    }
    return rooted(top, 1, tau);
  }
  static Row rooted(T top, T, T tau) { return {top, 1, tau, kSeen}; }
  static T lowest(const Arguments&, int, const Row& row) { return row.shift + row.threshold; }
  static T weight(const Arguments&, int, T e, const Row& row, int) {
    return larger(T(0), e - row.shift - row.threshold);
  }
  static T fold_weight(const Arguments&, int, T weight) { return weight > 0 ? T(1) : T(0); }
  static T gradient(const Arguments&, int, T weight, T da, T, const Row&, T delta, T) {
    return weight > 0 ? da - delta : T(0);
  }
};

}  // namespace fovea::cuda
