#include "tests/engine/scores/score_check.h"

namespace fovea::engine::testing {
namespace {

enum class Beta { kNone, kShared, kPerHead };
ScoreCase cosine(size_t nq, size_t nk, size_t width, Beta beta) {
  ScoreCase c{.nq = nq, .nk = nk, .query_width = width, .key_width = width};
  if (beta != Beta::kNone) c.shapes = {{beta == Beta::kPerHead ? 2 : 1}};
  c.low = {1}, c.high = {3};
  c.build = [=](const std::vector<View>& a) {
    return Score(Cosine{beta == Beta::kNone ? View{} : a[0]});
  };
  const size_t head = beta == Beta::kPerHead ? c.head : 0;
  c.equation = [=](const auto& arrays, const double* q, const double* k, size_t, size_t) {
    double qk = 0, qq = 0, kk = 0;
    for (size_t f = 0; f < width; ++f) qk += q[f] * k[f], qq += q[f] * q[f], kk += k[f] * k[f];
    return (beta == Beta::kNone ? 1 : arrays[0][head]) * qk / std::sqrt(qq * kk);
  };
  return c;
}

class CosineTest : public TargetTest {};

TEST_P(CosineTest, AgreesWithTheEquation) {
  for (size_t width : {2, 3, 16, 17})
    for (auto [nq, nk] : awkward_sizes())
      for (Beta beta : {Beta::kNone, Beta::kShared, Beta::kPerHead}) {
        check_both(cosine(nq, nk, width, beta), make_cosine<double>, make_cosine<float>);
        if (HasFatalFailure()) return;
      }
  check_both(cosine(5, 9, 3, Beta::kShared), make_cosine<double>, make_cosine<float>, true);
}

TEST_P(CosineTest, CosineOfARowWithoutDirectionIsZero) {
  const ScoreCase c = cosine(1, 2, 2, Beta::kNone);
  const ScoreInputs inputs{.q = {0, 0}, .k = {1, 2, 3, 4}, .arrays = {}, .ds = {1, 1}};
  const auto run = run_score<float>(c, make_cosine<float>, inputs, false);
  EXPECT_EQ(run.scores, (std::vector<double>{0, 0}));
  EXPECT_EQ(run.dq, (std::vector<double>{0, 0}));
  EXPECT_EQ(run.dk, (std::vector<double>{0, 0, 0, 0}));
}

FOVEA_FOR_EVERY_TARGET(CosineTest);

}  // namespace
}  // namespace fovea::engine::testing
