// What normalisers that solve a row of scores share. A row lies in memory, -infinity where a key is
// not seen; a warp reads it, 32 scores at a time.
#pragma once

namespace fovea::cuda {

struct ThresholdNormaliser : PlainNormaliser {
  static constexpr bool kThreshold = true;
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

}  // namespace fovea::cuda
