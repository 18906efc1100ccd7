#include "tests/engine/scores/score_check.h"

namespace fovea::engine::testing {
namespace {

class LocationTest : public TargetTest {};

TEST_P(LocationTest, AgreesWithTheEquation) {
  for (auto [nq, nk] : awkward_sizes()) {
    ScoreCase c{.nq = nq, .nk = nk, .query_width = nk + 4, .key_width = 1, .k0 = 3};
    c.build = [](const std::vector<View>&) { return Score(Location{}); };
    c.equation = [](const auto&, const double* q, const double*, size_t, size_t j) { return q[j]; };
    check_both(c, make_location<double>, make_location<float>);
  }
}

FOVEA_FOR_EVERY_TARGET(LocationTest);

}  // namespace
}  // namespace fovea::engine::testing
