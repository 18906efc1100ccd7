// A normaliser turns the scores of a row into its weights. What is kept of a row is four numbers;
// from them and a score comes the weight.
//
// Most fold a row in one pass: `power(e, shift)` is a weight up to a factor, `shift` the largest
// score so far; `finish` makes the row of the sum of powers, and `factor` brings sums of powers to
// sums of weights. The others (kThreshold) `solve` a whole row of scores, a warp at a time.
// Backward, `gradient` is the gradient of a score; all of a row share `delta`.
#pragma once

namespace fovea::cuda {

constexpr T kEmpty = 0, kSeen = 1, kSpoiled = 2;

struct Row {
  T shift, scale, threshold, state;
};

enum class Delta {
  kNone,
  kFromOutput,  // sum a da = dO.o
  kFold,        // sum w da / sum w, w = fold_weight
};

struct PlainNormaliser {
  static constexpr bool kThreshold = false;
  static constexpr bool kReaches = false;    // a score lower than the largest less `reach` has none
  static constexpr bool kShifts = false;     // powers need the largest score
  static constexpr bool kLooks = true;       // a score that is no number spoils the row
  static constexpr bool kParameter = false;  // has a number of the head with a gradient
  static constexpr bool kAlpha = false;      // whose gradient is a sum over the row
  static constexpr Delta kDelta = Delta::kNone;
  static constexpr bool kCounts = false;  // the k largest scores have weights, ties by their keys
  static T reach(const Arguments&, int) { return infinity_of(T()); }
  static T factor(T, const Row& row) { return row.scale; }
  static T lse(const Row&) { return 0; }
  static T fold_weight(const Arguments&, int, T) { return 0; }
  static T parameter_gradient(const Arguments&, int, const Row&, T, T) { return 0; }
  static T alpha_slope(const Arguments&, int, T, T, T, T) { return 0; }
  // On tensor cores `power_at(x, unit, base(shift, unit))` is power(e, shift) of e kUnit = x unit; a
  // score of -infinity has 0. Backward, `power_at(x, unit, level(row))` is the weight and
  // `gradient_at(weight, da, less(delta, d_lse))` the gradient of the score.
  static constexpr T kUnit = 1;
  static T base(T, T) { return 0; }
  static T power_at(T, T, T) { return 0; }
  static T level(const Row&) { return 0; }
  static T less(T, T) { return 0; }
  static T gradient_at(T, T, T) { return 0; }
  // Where a list of scores was solved: what names a place of the list is to name its key.
  static void name_key(Row&, const int*) {}
  // What only one of the two ways says.
  static T power(T, T) { return 0; }
  static Row finish(const Arguments&, int, T, T, T) { return {0, 0, 0, kEmpty}; }
  static Row solve(const Arguments&, int, const T*, int, unsigned long long, int, T*) {
    return {0, 0, 0, kEmpty};
  }
};

// The head's number, or the one of all.
inline T head_number(const Arguments& a, int head) {
  return element<T>(a.normaliser, 0, head, 0, 0);
}

}  // namespace fovea::cuda
