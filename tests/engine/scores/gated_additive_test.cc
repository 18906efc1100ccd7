#include "tests/engine/scores/score_check.h"

namespace fovea::engine::testing {
namespace {

ScoreCase gated_additive(size_t nq, size_t nk, size_t half, bool per_head) {
  ScoreCase c{.nq = nq, .nk = nk, .query_width = 2 * half, .key_width = 2 * half};
  const auto e = static_cast<int64_t>(half);
  c.shapes = {per_head ? std::vector<int64_t>{2, e} : std::vector<int64_t>{e}};
  c.build = [](const std::vector<View>& a) { return Score(GatedAdditive{a[0]}); };
  const size_t offset = per_head ? half * c.head : 0;
  c.equation = [=](const auto& arrays, const double* q, const double* k, size_t, size_t) {
    double sum = 0;
    for (size_t f = 0; f < half; ++f)
      sum += arrays[0][offset + f] * std::tanh(q[f] + k[f]) /
             (1 + std::exp(-q[half + f] - k[half + f]));
    return sum;
  };
  return c;
}

class GatedAdditiveTest : public TargetTest {};

TEST_P(GatedAdditiveTest, AgreesWithTheEquation) {
  for (size_t half : {1, 3, 16, 17})
    for (auto [nq, nk] : awkward_sizes()) {
      check_both(gated_additive(nq, nk, half, nk % 2 == 0), make_gated_additive<double>,
                 make_gated_additive<float>);
      if (HasFatalFailure()) return;
    }
  for (double spread : {6.0, 100.0}) {
    ScoreCase c = gated_additive(5, 9, 4, true);
    c.spread = spread;
    check_both(c, make_gated_additive<double>, make_gated_additive<float>);
  }
  check_both(gated_additive(5, 9, 4, true), make_gated_additive<double>, make_gated_additive<float>,
             true);
}

FOVEA_FOR_EVERY_TARGET(GatedAdditiveTest);

}  // namespace
}  // namespace fovea::engine::testing
