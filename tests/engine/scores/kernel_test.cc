#include <numbers>

#include "tests/engine/bounds.h"
#include "tests/engine/scores/score_check.h"

namespace fovea::engine::testing {
namespace {

using choice::KernelName;
constexpr double kPi = std::numbers::pi;

// The thirteen kernels by their formulas, u >= 0.
double kernel(KernelName name, double u) {
  using enum KernelName;
  switch (name) {
    case kGaussian:
      return std::exp(-u * u / 2) / std::sqrt(2 * kPi);
    case kLaplace:
      return std::exp(-u) / 2;
    case kLogistic:
      return 1 / (std::exp(u) + 2 + std::exp(-u));
    case kSigmoid:
      return 2 / kPi / (std::exp(u) + std::exp(-u));
    case kSilverman:
      return std::exp(-u / std::sqrt(2)) / 2 * std::sin(u / std::sqrt(2) + kPi / 4);
    case kCauchy:
      return 1 / (kPi * (1 + u * u));
    case kBox:
      return u > 1 ? 0 : 0.5;
    case kTriangular:
      return u > 1 ? 0 : 1 - u;
    case kEpanechnikov:
      return u > 1 ? 0 : 0.75 * (1 - u * u);
    case kQuartic:
      return u > 1 ? 0 : 15.0 / 16 * std::pow(1 - u * u, 2);
    case kTriweight:
      return u > 1 ? 0 : 35.0 / 32 * std::pow(1 - u * u, 3);
    case kTricube:
      return u > 1 ? 0 : 70.0 / 81 * std::pow(1 - u * u * u, 3);
    case kCosine:
      return u > 1 ? 0 : kPi / 4 * std::cos(kPi * u / 2);
  }
  return 0;
}

enum class Bandwidth { kShared, kPerHead, kPerQuery };
enum class Metric { kNone, kDiagonal, kFull };

struct Variant {
  KernelName name = KernelName::kGaussian;
  Face face = Face::kLog;
  Bandwidth bandwidth = Bandwidth::kShared;
  Metric metric = Metric::kNone;
};

ScoreCase kernel_case(const Variant& v, size_t nq, size_t nk, size_t width) {
  ScoreCase c{.nq = nq, .nk = nk, .query_width = width, .key_width = width};
  c.face = v.face;
  const auto e = static_cast<int64_t>(width), queries = static_cast<int64_t>(c.q0 + nq);
  const size_t out_width = v.metric == Metric::kFull ? 2 : width;
  switch (v.bandwidth) {
    case Bandwidth::kShared:
      c.shapes = {{1}};
      break;
    case Bandwidth::kPerHead:
      c.shapes = {{2}};
      break;
    case Bandwidth::kPerQuery:
      c.shapes = {{2, 2, queries}};
      break;
  }
  // So that compact kernels have pairs on both sides of u = 1, and none so close to it that a
  // difference straddles it.
  const double reach = std::sqrt(2.0 * static_cast<double>(width));
  c.low = {reach * 0.9, 0.5}, c.high = {reach * 1.5, 1.5};
  if (v.metric == Metric::kDiagonal) c.shapes.push_back({e});
  if (v.metric == Metric::kFull) c.shapes.push_back({2, e});
  c.build = [=](const std::vector<View>& a) {
    return Score(Kernel{v.name, a[0], v.metric == Metric::kNone ? View{} : a[1]});
  };
  const ScoreCase base = c;
  c.equation = [=](const auto& arrays, const double* q, const double* k, size_t i, size_t) {
    double sum = 0;
    for (size_t r = 0; r < out_width; ++r) {
      double x = 0;
      if (v.metric == Metric::kFull) {
        for (size_t f = 0; f < width; ++f) x += arrays[1][r * width + f] * (q[f] - k[f]);
      } else {
        x = (v.metric == Metric::kDiagonal ? arrays[1][r] : 1) * (q[r] - k[r]);
      }
      sum += x * x;
    }
    const double h = v.bandwidth == Bandwidth::kShared ? arrays[0][0]
                     : v.bandwidth == Bandwidth::kPerHead
                         ? arrays[0][base.head]
                         : arrays[0][(base.batch * 2 + base.head) * (base.q0 + nq) + i];
    const double value = kernel(v.name, std::sqrt(sum) / h);
    return v.face == Face::kLog ? std::log(value) : value;
  };
  return c;
}

constexpr KernelName kAll[] = {
    KernelName::kGaussian, KernelName::kLaplace,    KernelName::kLogistic,
    KernelName::kSigmoid,  KernelName::kSilverman,  KernelName::kCauchy,
    KernelName::kBox,      KernelName::kTriangular, KernelName::kEpanechnikov,
    KernelName::kQuartic,  KernelName::kTriweight,  KernelName::kTricube,
    KernelName::kCosine};

class KernelTest : public TargetTest {
 protected:
  static void check(const Variant& v, size_t nq, size_t nk, size_t width, bool poison = false) {
    check_both(kernel_case(v, nq, nk, width), make_kernel<double>, make_kernel<float>, poison);
    if (HasFatalFailure()) {
      FAIL() << "kernel " << static_cast<int>(v.name) << ", face " << static_cast<int>(v.face)
             << ", " << nq << " x " << nk << ", width " << width;
    }
  }
};

TEST_P(KernelTest, EveryKernelAndFace) {
  for (KernelName name : kAll) {
    for (Face face : {Face::kLog, Face::kValue}) {
      if (name == KernelName::kSilverman && face == Face::kLog) continue;  // no logarithm
      check({.name = name, .face = face}, 5, 17, 3);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(KernelTest, EveryBandwidthAndMetric) {
  for (KernelName name : {KernelName::kGaussian, KernelName::kCauchy})
    for (Bandwidth bandwidth : {Bandwidth::kShared, Bandwidth::kPerHead, Bandwidth::kPerQuery})
      for (Metric metric : {Metric::kNone, Metric::kDiagonal, Metric::kFull}) {
        check({.name = name, .bandwidth = bandwidth, .metric = metric}, 6, 9, 3);
        if (HasFatalFailure()) return;
      }
}

TEST_P(KernelTest, AwkwardSizes) {
  for (KernelName name : {KernelName::kGaussian, KernelName::kLaplace})
    for (size_t width : {1, 2, 4, 5, 16, 17})
      for (auto [nq, nk] : {std::pair<size_t, size_t>{1, 1}, {4, 15}, {5, 16}, {3, 67}}) {
        check({.name = name}, nq, nk, width);
        if (HasFatalFailure()) return;
      }
}

TEST_P(KernelTest, PairsLeftOutMayHoldNaN) {
  for (KernelName name : kAll) {
    check({.name = name, .face = Face::kValue, .metric = Metric::kFull}, 6, 13, 3, true);
    if (HasFatalFailure()) return;
  }
}

TEST_P(KernelTest, NearPointsKeepTheirDistance) {
  // Far from the origin, |q|^2 - 2 q.k + |k|^2 would lose all of it in float.
  std::vector<float> h = {1};
  ScoreCase c = kernel_case({.name = KernelName::kGaussian}, 1, 1, 2);
  const ScoreInputs inputs{.q = {4096.5, 0}, .k = {4096, 0.25}, .arrays = {{1}}, .ds = {1}};
  const auto run = run_score<float>(c, make_kernel<float>, inputs, false);
  expect_close(run.scores[0], -(0.25 + 0.0625) / 2 - std::log(2 * kPi) / 2, bounds::rounded(1));
}

FOVEA_FOR_EVERY_TARGET(KernelTest);

}  // namespace
}  // namespace fovea::engine::testing
