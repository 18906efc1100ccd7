// One key: the largest score, or one drawn from the softmax (kSample); lse is the log of its softmax
// probability.
#pragma once

namespace fovea::cuda {

template <bool kSample>
struct HardOf : ThresholdNormaliser {
  // The first key with the largest score.
  static int first_of(const T* scores, int count, T top) {
    for (int start = 0; start < count; start += kWarp) {
      const int n = start + threadIdx.x % kWarp;
      const unsigned found = __ballot_sync(~0u, n < count && scores[n] == top);
      if (found) return start + __ffs(found) - 1;
    }
    return 0;
  }
  // The key where the running sum of probabilities first passes a random number, the last seen where
  // rounding leaves none.
  static int drawn(const T* scores, int count, T top, double uniform) {
    double total = 0;
    each_score(scores, count, [&](T e, int) { total += exponential(e - top); });
    const double bound = uniform * lanes_sum(total);
    double before = 0;
    int last = 0;
    for (int start = 0; start < count; start += kWarp) {
      const int lane = threadIdx.x % kWarp, n = start + lane;
      const T e = n < count ? scores[n] : -infinity_of(T());
      double sum = exponential(e - top);  // of the lanes up to this one
      for (int distance = 1; distance < kWarp; distance *= 2) {
        const double other = __shfl_up_sync(~0u, sum, distance);
        if (lane >= distance) sum += other;
      }
      const bool seen = e > -infinity_of(T());
      const unsigned passed = __ballot_sync(~0u, seen && before + sum > bound),
                     any = __ballot_sync(~0u, seen);
      if (passed) return start + __ffs(passed) - 1;
      if (any) last = start + 31 - __clz(any);
      before += __shfl_sync(~0u, sum, kWarp - 1);
    }
    return last;
  }

  static Row solve(const Arguments&, int, const T* scores, int count, unsigned long long random,
                   int first, T* lse) {
    const T top = largest_score(scores, count);
    if (top == -infinity_of(T())) {
      if (lse) *lse = top;
      return {0, 0, 0, kEmpty};
    }
    const T sum = sum_of_powers(scores, count, top, [](T, int) { return true; });
    const int choice = kSample ? drawn(scores, count, top, engine::random_uniform(random))
                               : first_of(scores, count, top);
    if (lse) *lse = scores[choice] - top - logarithm(sum);
    return {top, 1 / sum, 0, state_of(first + choice)};
  }
  static T weight(const Arguments&, int, T, const Row& row, int ordinal) {
    return ordinal == ordinal_of(row.state) ? T(1) : T(0);
  }
  static T gradient(const Arguments&, int, T weight, T, T e, const Row& row, T, T d_lse) {
    return d_lse * (weight - exponential(e - row.shift) * row.scale);
  }
};
using Hard = HardOf<false>;
using HardSampled = HardOf<true>;

}  // namespace fovea::cuda
