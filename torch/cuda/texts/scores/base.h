// A score is a sum over features, `step` by `step`, that `finish` turns into a number. Backward,
// `slope` turns the gradient of the score into one number g for the pair, and `query_terms` and
// `key_terms` are what g gives to a feature of the query and of the key.
#pragma once

namespace fovea::cuda {

struct ProductScore {
  static constexpr bool kDirect = false;     // from the place alone, without features
  static constexpr int kComponents = 1;      // numbers of a feature, a width of features apart
  static constexpr bool kWeighted = false;   // steps take a weight of the feature
  static constexpr bool kPositive = false;   // a kernel that is positive everywhere, as a logarithm
  static constexpr bool kBandwidth = false;  // finish takes a number of the query
  static constexpr bool kFactored = false;  // a sum of w (1 - 2 / (1 + u v)), u, v of one side each
  static T factor(T) { return 0; }          // that u, v
  static constexpr bool kOwn = false;  // terms need the feature on both sides, not the other alone
  // The gradient of the query's number.
  static T bandwidth_slope(const Arguments&, T, T, T) { return 0; }
  static T weight_term(T, const T*, const T*) { return 0; }
  // Of scores from the place alone: the score, and whether it is the query's to have a gradient.
  static constexpr bool kGivesQuery = false;
  static T value(const Operand*, int) { return 0; }
  // And what those do not say.
  static T step(T sum, const T*, const T*, T) { return sum; }
  static T finish(const Arguments&, T sum, T) { return sum; }
  static T slope(const Arguments&, T, T, T de) { return de; }
  static void query_terms(T, const T*, const T*, T*) {}
  static void key_terms(T, const T*, const T*, T*) {}
};

}  // namespace fovea::cuda
