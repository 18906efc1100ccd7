// The SIMD functions against libm in higher precision, over their whole range, under every compiled
// target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/engine/simd/math_test.cc"
// clang-format off: foreach_target must come before what is compiled for each target.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/simd/math-inl.h"
#include "engine/simd/zero-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, class Function>
void map(const T* in, T* out, size_t n, Function function) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN T last[hn::MaxLanes(d)];
  for (size_t i = 0; i < n; i += lanes) {
    const size_t count = HWY_MIN(lanes, n - i);
    for (size_t lane = 0; lane < lanes; ++lane) last[lane] = in[i + HWY_MIN(lane, count - 1)];
    hn::Store(function(d, hn::Load(d, last)), d, last);
    for (size_t lane = 0; lane < count; ++lane) out[i + lane] = last[lane];
  }
}

#define FOVEA_MAP(NAME, FUNCTION)                                            \
  void NAME##_f32(const float* in, float* out, size_t n) {                   \
    map(in, out, n, [](auto d, auto x) HWY_ATTR { return FUNCTION(d, x); }); \
  }                                                                          \
  void NAME##_f64(const double* in, double* out, size_t n) {                 \
    map(in, out, n, [](auto d, auto x) HWY_ATTR { return FUNCTION(d, x); }); \
  }
template <class D, class V>
HWY_INLINE V itself_to_one(D d, V x) {
  return zero_above(d, x, hn::Set(d, hn::TFromD<D>(1)), x);
}
FOVEA_MAP(map_to_one, itself_to_one)
FOVEA_MAP(map_exp, exp)
FOVEA_MAP(map_exp_bounded, exp_bounded)
FOVEA_MAP(map_exp2_bounded, exp2_bounded)
FOVEA_MAP(map_log, log)
FOVEA_MAP(map_tanh, tanh)
FOVEA_MAP(map_sigmoid, sigmoid)
FOVEA_MAP(map_reciprocal, reciprocal)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace fovea::engine {
namespace {

#define FOVEA_EXPORT(NAME) \
  HWY_EXPORT(NAME##_f32);  \
  HWY_EXPORT(NAME##_f64);
FOVEA_EXPORT(map_to_one)
FOVEA_EXPORT(map_exp)
FOVEA_EXPORT(map_exp_bounded)
FOVEA_EXPORT(map_exp2_bounded)
FOVEA_EXPORT(map_log)
FOVEA_EXPORT(map_tanh)
FOVEA_EXPORT(map_sigmoid)
FOVEA_EXPORT(map_reciprocal)

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// Distance in units of the last place of the true value.
template <class T>
double ulps(T got, long double want) {
  if (std::isnan(got) || std::isinf(got)) return got == static_cast<T>(want) ? 0 : 1e30;
  const T near = static_cast<T>(want);
  const long double unit = std::nextafter(std::fabs(near), kInfinity<T>) - std::fabs(near);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / unit);
}

// Evenly spaced values, with the neighbourhood of 0 down to 1e-30 on both sides.
template <class T>
std::vector<T> range(double low, double high) {
  std::vector<T> x;
  const int n = 200003;
  for (int i = 0; i <= n; ++i) x.push_back(static_cast<T>(low + (high - low) * i / n));
  for (double size = 1e-30; size < 1; size *= 1.37) {
    for (double near_zero : {size, -size})
      if (low <= near_zero && near_zero <= high) x.push_back(static_cast<T>(near_zero));
  }
  return x;
}

template <class T, class Map, class Truth>
double worst(const std::vector<T>& x, Map map, Truth truth) {
  std::vector<T> y(x.size());
  map(x.data(), y.data(), x.size());
  double most = 0;
  T at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], truth(static_cast<long double>(x[i])));
    if (error > most) most = error, at = x[i];
  }
  ::testing::Test::RecordProperty("worst_ulps", std::to_string(most) + " at " + std::to_string(at));
  return most;
}

template <class T, class Map>
T one(Map map, T x) {
  T y = 0;
  map(&x, &y, 1);
  return y;
}

class MathTest : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(MathTest, Exp) {
  auto f32 = HWY_DYNAMIC_DISPATCH(map_exp_f32);
  auto f64 = HWY_DYNAMIC_DISPATCH(map_exp_f64);
  auto truth = [](long double x) { return std::exp(x); };
  EXPECT_LE(worst(range<float>(-87.3, 88.7), f32, truth), 3);
  EXPECT_LE(worst(range<double>(-708.3, 709.7), f64, truth), 3);
  EXPECT_LE(worst(range<float>(-87.3, 88), HWY_DYNAMIC_DISPATCH(map_exp_bounded_f32), truth), 3);
  EXPECT_LE(worst(range<double>(-708.3, 709), HWY_DYNAMIC_DISPATCH(map_exp_bounded_f64), truth), 3);
}

TEST_P(MathTest, Exp2) {
  auto truth = [](long double x) { return std::exp2(x); };
  EXPECT_LE(worst(range<float>(-126, 127), HWY_DYNAMIC_DISPATCH(map_exp2_bounded_f32), truth), 3);
  EXPECT_LE(worst(range<double>(-1022, 1023), HWY_DYNAMIC_DISPATCH(map_exp2_bounded_f64), truth),
            3);
}

TEST_P(MathTest, Log) {
  auto truth = [](long double x) { return std::log(x); };
  for (double high : {2e-38, 1e-3, 2.0, 1e6, 3e38}) {
    EXPECT_LE(worst(range<float>(1e-45, high), HWY_DYNAMIC_DISPATCH(map_log_f32), truth), 3);
    EXPECT_LE(worst(range<double>(1e-320, high), HWY_DYNAMIC_DISPATCH(map_log_f64), truth), 3);
  }
}

TEST_P(MathTest, Tanh) {
  auto truth = [](long double x) { return std::tanh(x); };
  for (double high : {1e-2, 1.0, 12.0, 1e6}) {
    EXPECT_LE(worst(range<float>(-high, high), HWY_DYNAMIC_DISPATCH(map_tanh_f32), truth), 5);
    EXPECT_LE(worst(range<double>(-high, high), HWY_DYNAMIC_DISPATCH(map_tanh_f64), truth), 5);
  }
}

TEST_P(MathTest, Sigmoid) {
  auto truth = [](long double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LE(worst(range<float>(-86, 90), HWY_DYNAMIC_DISPATCH(map_sigmoid_f32), truth), 5);
  EXPECT_LE(worst(range<double>(-708, 710), HWY_DYNAMIC_DISPATCH(map_sigmoid_f64), truth), 5);
}

TEST_P(MathTest, Reciprocal) {
  auto truth = [](long double x) { return 1 / x; };
  EXPECT_LE(worst(range<float>(1e-20, 1e20), HWY_DYNAMIC_DISPATCH(map_reciprocal_f32), truth), 1.5);
  EXPECT_LE(worst(range<float>(-9, -1), HWY_DYNAMIC_DISPATCH(map_reciprocal_f32), truth), 1.5);
  EXPECT_LE(worst(range<double>(1e-20, 1e20), HWY_DYNAMIC_DISPATCH(map_reciprocal_f64), truth), 1);
}

template <class T, class Exp, class ExpBounded, class Exp2Bounded>
void check_exp_ends(Exp exp, ExpBounded exp_bounded, Exp2Bounded exp2_bounded, T lowest_exponent,
                    T overflow) {
  for (T x : {lowest_exponent, T(2 * lowest_exponent), T(-1e30), -kInfinity<T>}) {
    const T natural = static_cast<T>(x * T(0.6931471805599453L) * T(1.000001));
    EXPECT_EQ(one(exp, natural), 0) << natural;
    EXPECT_EQ(one(exp_bounded, natural), 0) << natural;
    EXPECT_EQ(one(exp2_bounded, x), 0) << x;
  }
  for (T zero : {T(0), -T(0)}) {
    EXPECT_EQ(one(exp, zero), 1);
    EXPECT_EQ(one(exp_bounded, zero), 1);
    EXPECT_EQ(one(exp2_bounded, zero), 1);
  }
  for (T x : {overflow, T(2 * overflow), T(1e30), kInfinity<T>}) {
    EXPECT_EQ(one(exp, x), kInfinity<T>) << x;
  }
}

TEST_P(MathTest, ExpIsExactAtItsEnds) {
  check_exp_ends<float>(HWY_DYNAMIC_DISPATCH(map_exp_f32),
                        HWY_DYNAMIC_DISPATCH(map_exp_bounded_f32),
                        HWY_DYNAMIC_DISPATCH(map_exp2_bounded_f32), -127.0f, 88.73f);
  check_exp_ends<double>(HWY_DYNAMIC_DISPATCH(map_exp_f64),
                         HWY_DYNAMIC_DISPATCH(map_exp_bounded_f64),
                         HWY_DYNAMIC_DISPATCH(map_exp2_bounded_f64), -1023.0, 709.79);
}

TEST_P(MathTest, ExpNearsZeroSmoothly) {
  // Between the last normal result and 0 the error stays under the smallest normal number.
  std::vector<float> x = range<float>(-89, -87), y(x.size());
  HWY_DYNAMIC_DISPATCH(map_exp_f32)(x.data(), y.data(), x.size());
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(std::fabs(y[i] - std::exp(static_cast<double>(x[i]))),
              std::numeric_limits<float>::min())
        << x[i];
}

template <class T, class Log, class Tanh, class Sigmoid>
void check_other_ends(Log log, Tanh tanh, Sigmoid sigmoid) {
  EXPECT_EQ(one(log, T(0)), -kInfinity<T>);
  EXPECT_EQ(one(log, T(1)), 0);
  EXPECT_EQ(one(log, kInfinity<T>), kInfinity<T>);
  EXPECT_TRUE(std::isnan(one(log, T(-1))));
  EXPECT_EQ(one(tanh, T(0)), 0);
  EXPECT_EQ(one(tanh, kInfinity<T>), 1);
  EXPECT_EQ(one(tanh, -kInfinity<T>), -1);
  EXPECT_EQ(one(tanh, T(0.3)), -one(tanh, T(-0.3)));
  EXPECT_EQ(one(sigmoid, T(0)), T(0.5));
  EXPECT_EQ(one(sigmoid, kInfinity<T>), 1);
  EXPECT_EQ(one(sigmoid, -kInfinity<T>), 0);
  EXPECT_EQ(one(sigmoid, T(-1e4)), 0);
}

TEST_P(MathTest, OtherEnds) {
  check_other_ends<float>(HWY_DYNAMIC_DISPATCH(map_log_f32), HWY_DYNAMIC_DISPATCH(map_tanh_f32),
                          HWY_DYNAMIC_DISPATCH(map_sigmoid_f32));
  check_other_ends<double>(HWY_DYNAMIC_DISPATCH(map_log_f64), HWY_DYNAMIC_DISPATCH(map_tanh_f64),
                           HWY_DYNAMIC_DISPATCH(map_sigmoid_f64));
}

// 0xff.. is what memory that was cleared with -1 holds, a payload of 1954 is a missing value of R's.
template <class T>
std::vector<T> not_numbers() {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Bits kQuiet = std::bit_cast<Bits>(std::numeric_limits<T>::quiet_NaN());
  constexpr Bits kLoud = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  std::vector<T> all;
  for (const Bits bits : {kQuiet, ~Bits{0}, kQuiet | 1, kQuiet | 127, kLoud | 1, kLoud | 1954})
    for (const Bits sign : {Bits{0}, Bits{1} << (8 * sizeof(T) - 1)})
      all.push_back(std::bit_cast<T>(bits | sign));
  return all;
}

template <class T, class Map>
void check_keeps_nan(const char* name, Map map) {
  for (const T x : not_numbers<T>()) {
    const T y = one(map, x);
    EXPECT_TRUE(std::isnan(y)) << name << " of " << x << " is " << y;
  }
}

template <class T, class Map>
void check_zeroed(Map to_one) {
  for (const T x : {-kInfinity<T>, T(-3), T(0), std::nextafter(T(1), T(0)), T(1),
                    std::nextafter(T(1), T(2)), T(7), kInfinity<T>})
    EXPECT_EQ(one(to_one, x), x > 1 ? 0 : x);
}
TEST_P(MathTest, ZeroAboveABound) {
  check_zeroed<float>(HWY_DYNAMIC_DISPATCH(map_to_one_f32));
  check_zeroed<double>(HWY_DYNAMIC_DISPATCH(map_to_one_f64));
}

TEST_P(MathTest, KeepsEveryNaN) {
#define FOVEA_CHECK(NAME)                                          \
  check_keeps_nan<float>(#NAME, HWY_DYNAMIC_DISPATCH(NAME##_f32)); \
  check_keeps_nan<double>(#NAME, HWY_DYNAMIC_DISPATCH(NAME##_f64));
  FOVEA_CHECK(map_to_one)
  FOVEA_CHECK(map_exp)
  FOVEA_CHECK(map_exp_bounded)
  FOVEA_CHECK(map_exp2_bounded)
  FOVEA_CHECK(map_log)
  FOVEA_CHECK(map_tanh)
  FOVEA_CHECK(map_sigmoid)
  FOVEA_CHECK(map_reciprocal)
}

INSTANTIATE_TEST_SUITE_P(Targets, MathTest,
                         ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

}  // namespace
}  // namespace fovea::engine
#endif
