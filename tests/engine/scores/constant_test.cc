#include "tests/engine/scores/score_check.h"

namespace fovea::engine::testing {
namespace {

class ConstantTest : public TargetTest {};

TEST_P(ConstantTest, AgreesWithTheEquation) {
  for (auto [nq, nk] : awkward_sizes()) {
    ScoreCase c{.nq = nq, .nk = nk};
    c.build = [](const std::vector<View>&) { return Score(Constant{}); };
    c.equation = [](const auto&, const double*, const double*, size_t, size_t) { return 1.0; };
    check_both(c, make_constant<double>, make_constant<float>);
    if (nk > 2) check_both(c, make_constant<double>, make_constant<float>, true);
  }
}

FOVEA_FOR_EVERY_TARGET(ConstantTest);

}  // namespace
}  // namespace fovea::engine::testing
