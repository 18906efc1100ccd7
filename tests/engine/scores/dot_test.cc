#include "tests/engine/scores/score_check.h"

namespace fovea::engine::testing {
namespace {

ScoreCase dot(size_t nq, size_t nk, size_t width, std::optional<double> scale) {
  ScoreCase c{.nq = nq, .nk = nk, .query_width = width, .key_width = width};
  c.build = [=](const std::vector<View>&) { return Score(Dot{scale}); };
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(width)));
  c.equation = [=](const auto&, const double* q, const double* k, size_t, size_t) {
    double sum = 0;
    for (size_t e = 0; e < width; ++e) sum += q[e] * k[e];
    return factor * sum;
  };
  return c;
}

class DotTest : public TargetTest {};

// Scaled by 1 / sqrt(width) unless the choice says otherwise.
TEST_P(DotTest, AgreesWithTheEquation) {
  for (const std::optional<double> scale : {std::optional<double>{}, {0.3}, {-2.0}, {0.0}})
    for (size_t width : {1, 3, 16, 17, 64})
      for (auto [nq, nk] : awkward_sizes()) {
        check_both(dot(nq, nk, width, scale), make_dot<double>, make_dot<float>);
        if (HasFatalFailure()) return;
      }
}

TEST_P(DotTest, PairsLeftOutMayHoldNaN) {
  check_both(dot(5, 9, 4, {}), make_dot<double>, make_dot<float>, true);
}

FOVEA_FOR_EVERY_TARGET(DotTest);

}  // namespace
}  // namespace fovea::engine::testing
