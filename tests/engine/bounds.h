// How far a number may be from what it should be, each bound from where the difference comes from;
// and the comparison with them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace fovea::bounds {

inline constexpr double kFloatUlp = std::numeric_limits<float>::epsilon(),
                        kDoubleUlp = std::numeric_limits<double>::epsilon();

// A result of a few products and sums, computed along another path: a few units in the last place
// of the largest number in it. A product of width E rounds E times, but by half a unit, and up as
// often as down. 9 units seen in the sweep over the case table.
inline constexpr double kUlps = 12;
inline double rounded(double scale, double ulp = kFloatUlp) { return kUlps * ulp * scale; }

// The unit in the last place of 1 in a type.
template <class T>
inline constexpr double kUlpOf = std::numeric_limits<T>::epsilon();

// A number that is written with so many decimals.
inline double decimals(int count) { return 0.5 * std::pow(10.0, -count); }

// A central difference in double of a loss of the size of `scale`: it leaves out terms of step²,
// and divides what the loss rounds by the step.
inline double difference(double step, double scale) {
  return scale * step * step + rounded(scale, kDoubleUlp) / step;
}

// The number of hits in `draws` draws with probability p: five standard deviations. One test in
// 1.7 million fails by chance, and as seeds are fixed, none does at one time only.
inline double hits(double draws, double p) { return 5 * std::sqrt(draws * p * (1 - p)); }

}  // namespace fovea::bounds

namespace fovea {

// Whether the two differ by no more than `bound`; equal infinities, and two that are no numbers, do
// not differ.
inline bool close(double got, double expected, double bound) {
  return got == expected || (std::isnan(got) && std::isnan(expected)) ||
         std::fabs(got - expected) <= bound;
}

// For loops over an array: the first difference ends the test. `got`, `expected` and `bound` are
// printed.
#define FOVEA_ASSERT_CLOSE(got, expected, bound) ASSERT_PRED3(::fovea::close, got, expected, bound)

inline void expect_close(double got, double expected, double bound, const std::string& what = "") {
  EXPECT_TRUE(close(got, expected, bound))
      << what << ": " << got << ", expected " << expected << " within " << bound;
}

}  // namespace fovea
