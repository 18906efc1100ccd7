#include "tests/engine/scores/score_check.h"

namespace fovea::engine::testing {
namespace {

ScoreCase additive(size_t nq, size_t nk, size_t width, bool per_head,
                   choice::Activation activation) {
  ScoreCase c{.nq = nq, .nk = nk, .query_width = width, .key_width = width};
  const auto e = static_cast<int64_t>(width);
  c.shapes = {per_head ? std::vector<int64_t>{2, e} : std::vector<int64_t>{e}};
  c.build = [=](const std::vector<View>& a) { return Score(Additive{a[0], activation}); };
  const size_t offset = per_head ? width * c.head : 0;
  c.equation = [=](const auto& arrays, const double* q, const double* k, size_t, size_t) {
    double sum = 0;
    for (size_t f = 0; f < width; ++f) {
      const double x = q[f] + k[f];
      sum += arrays[0][offset + f] * (activation == choice::Activation::kTanh ? std::tanh(x)
                                      : x < 0                                 ? 0.2 * x
                                                                              : x);
    }
    return sum;
  };
  return c;
}

class AdditiveTest : public TargetTest {};

TEST_P(AdditiveTest, AgreesWithTheEquation) {
  for (auto activation : {choice::Activation::kTanh, choice::Activation::kLeakyRelu}) {
    for (size_t width : {1, 3, 15, 16, 17, 33, 64}) {
      for (auto [nq, nk] : {std::pair<size_t, size_t>{1, 1}, {2, 3}, {5, 17}, {7, 8}, {3, 31}}) {
        const ScoreCase c = additive(nq, nk, width, nk % 2 == 0, activation);
        check_both(c, make_additive<double>, make_additive<float>);
        if (HasFatalFailure()) FAIL() << "width " << width << ", " << nq << " x " << nk;
      }
    }
  }
}

TEST_P(AdditiveTest, TakesInputsOfAnySize) {
  // 3 leaves the path of four features a division, 6 that of two, 30 the clamped one in float, 300
  // in double.
  for (double spread : {3.0, 6.0, 30.0, 300.0}) {
    for (size_t width : {5, 70}) {
      ScoreCase c = additive(6, 13, width, false, choice::Activation::kTanh);
      c.spread = spread;
      check_both(c, make_additive<double>, make_additive<float>);
      if (HasFatalFailure()) FAIL() << "spread " << spread << ", width " << width;
    }
  }
}

TEST_P(AdditiveTest, PairsLeftOutMayHoldNaN) {
  for (auto activation : {choice::Activation::kTanh, choice::Activation::kLeakyRelu}) {
    for (double spread : {1.0, 30.0}) {
      ScoreCase c = additive(6, 13, 19, true, activation);
      c.spread = spread;
      check_both(c, make_additive<double>, make_additive<float>, true);
    }
  }
}

FOVEA_FOR_EVERY_TARGET(AdditiveTest);

}  // namespace
}  // namespace fovea::engine::testing
