// What normalisers that solve a row of scores share. A row lies in memory, -infinity where a key is
// not seen; a warp reads it, 32 scores at a time.
#pragma once

namespace fovea::cuda {

struct ThresholdNormaliser : PlainNormaliser {
  static constexpr bool kThreshold = true;
  // On tensor cores (drivers/mma/mma_lists.h): whether the threshold is a root, where weights are
  // raised(factor (e - top) - tau, factor), or the k-th score; the row of a root; a score below which
  // no pair of a row has weight, but for rounding.
  static constexpr bool kRoot = true;
  static T factor_of(const Arguments&, int) { return 1; }
  static T raised(T x, T) { return x; }
  static T rise(T, T, T) { return 1; }  // factor times the slope of `raised`, given its value
  static Row rooted(T, T, T) { return {0, 0, 0, kEmpty}; }
  static T lowest(const Arguments&, int, const Row& row) { return row.threshold; }
  // Of the k-th score: scores as numbers of the same order, what is taken.
  static unsigned long long order(T) { return 0; }
  static bool chosen(T, int, T, int) { return false; }
};

// A row's state that also says which key is the last of the ties, or the one that is taken.
inline T state_of(int ordinal) { return static_cast<T>(4 + ordinal); }
inline int ordinal_of(T state) { return static_cast<int>(state) - 4; }

template <class Visit>
void each_score(const T* scores, int count, Visit visit) {
  for (int n = threadIdx.x % kWarp; n < count; n += kWarp) visit(scores[n], n);
}

inline T largest_score(const T* scores, int count) {
  T top = -infinity_of(T());
  each_score(scores, count, [&](T e, int) { top = larger(top, e); });
  return lanes_max(top);
}

// The sum of exp(e - shift) over the scores that `chosen` takes.
template <class Chosen>
T sum_of_powers(const T* scores, int count, T shift, Chosen chosen) {
  T sum = 0;
  each_score(scores, count, [&](T e, int n) {
    if (chosen(e, n)) sum += exponential(e - shift);
  });
  return lanes_sum(sum);
}

// The root tau in [-1, 0] of a falling function that is 1 there, given its sum and slope: Newton's step
// where it stays inside what is known, else the middle.
struct Root {
  T low = -1, high = 0, tau = -1;
  bool step(T sum, T slope) {  // false: found
    (sum >= 1 ? low : high) = tau;
    T next = tau + (sum - 1) / slope;
    if (!(next > low && next < high)) next = (low + high) / 2;
    const T moved = next > tau ? next - tau : tau - next;
    if (moved <= (sizeof(T) == 8 ? T(4e-16) : T(2e-7)) * -low || next == low || next == high)
      return false;
    tau = next;
    return true;
  }
};
constexpr int kRootSteps = 4 * sizeof(T) * 8;

}  // namespace fovea::cuda
