#include "tests/engine/scores/score_check.h"

namespace fovea::engine::testing {
namespace {

class RankOneTest : public TargetTest {};

TEST_P(RankOneTest, AgreesWithTheEquation) {
  for (auto [nq, nk] : awkward_sizes()) {
    ScoreCase c{.nq = nq, .nk = nk, .query_width = 1, .key_width = 1};
    c.build = [](const std::vector<View>&) { return Score(RankOne{0.3}); };
    c.equation = [](const auto&, const double* q, const double* k, size_t, size_t) {
      const double x = *q + *k;
      return x > 0 ? x : 0.3 * x;
    };
    check_both(c, make_rank_one<double>, make_rank_one<float>);
    if (nk > 2) check_both(c, make_rank_one<double>, make_rank_one<float>, true);
  }
}

FOVEA_FOR_EVERY_TARGET(RankOneTest);

}  // namespace
}  // namespace fovea::engine::testing
