// Softmax over the k largest scores, ties to the earlier. The k-th largest is found bit by bit, on
// numbers ordered as the scores are.
#pragma once

namespace fovea::cuda {

struct TopK : ThresholdNormaliser {
  static constexpr Delta kDelta = Delta::kFromOutput;
  static constexpr bool kCounts = true;
  static constexpr bool kRoot = false;
  using Order = unsigned long long;
  static Order order(float e) {
    const unsigned bits = __float_as_uint(e + 0.0f);  // one zero
    return bits >> 31 ? ~bits : bits | 0x80000000u;
  }
  static Order order(double e) {
    const Order bits = static_cast<Order>(__double_as_longlong(e + 0.0));
    return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
  }
  static bool chosen(T e, int ordinal, T threshold, int last) {
    return e > threshold || (e == threshold && ordinal <= last);
  }

  static Row solve(const Arguments& a, int, const T* scores, int count, unsigned long long,
                   int first, T* lse) {
    const T top = largest_score(scores, count);
    if (top == -infinity_of(T())) {
      if (lse) *lse = top;
      return {0, 0, 0, kEmpty};
    }
    constexpr int kBits = 8 * sizeof(T);
    Order found = 0;  // the largest number that at least k scores reach
    for (int bit = kBits - 1; bit >= 0; --bit) {
      const Order tried = found | Order(1) << bit;
      int reached = 0;
      each_score(scores, count, [&](T e, int) { reached += order(e) >= tried; });
      if (lanes_sum(reached) >= a.k) found = tried;
    }
    // The score of that number, how many lie above it, and the tie that fills the k.
    T threshold = -infinity_of(T());
    int above = 0;
    each_score(scores, count, [&](T e, int) {
      if (order(e) == found) threshold = e;
      above += order(e) > found;
    });
    threshold = lanes_max(threshold);
    Whole left = a.k - lanes_sum(above);
    int last = -1;
    if (threshold > -infinity_of(T())) {
      for (int start = 0; start < count && left > 0; start += kWarp) {
        const int n = start + threadIdx.x % kWarp;
        unsigned ties = __ballot_sync(~0u, n < count && scores[n] == threshold);
        for (; ties && left > 0; ties &= ties - 1, --left) last = start + __ffs(ties) - 1;
      }
    }
    const T sum = sum_of_powers(scores, count, top,
                                [&](T e, int n) { return chosen(e, n, threshold, last); });
    if (lse) *lse = top + logarithm(sum);
    return {top, 1 / sum, threshold, state_of(first + last)};
  }
  static void name_key(Row& row, const int* keys) {
    const int last = ordinal_of(row.state);
    if (last >= 0) row.state = state_of(keys[last]);
  }
  static T weight(const Arguments&, int, T e, const Row& row, int ordinal) {
    if (!chosen(e, ordinal, row.threshold, ordinal_of(row.state))) return 0;
    return exponential(e - row.shift) * row.scale;
  }
  static T gradient(const Arguments&, int, T weight, T da, T, const Row&, T delta, T d_lse) {
    return weight * (da - delta + d_lse);
  }
};

}  // namespace fovea::cuda
