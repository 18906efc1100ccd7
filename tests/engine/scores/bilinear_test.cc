#include "tests/engine/scores/score_check.h"

namespace fovea::engine::testing {
namespace {

ScoreCase bilinear(size_t nq, size_t nk, size_t in, size_t out, bool per_head) {
  ScoreCase c{.nq = nq, .nk = nk, .query_width = in, .key_width = out};
  const auto a = static_cast<int64_t>(in), b = static_cast<int64_t>(out);
  c.shapes = {per_head ? std::vector<int64_t>{2, a, b} : std::vector<int64_t>{a, b}};
  c.build = [](const std::vector<View>& w) { return Score(Bilinear{w[0], 0.5}); };
  const size_t offset = per_head ? in * out * c.head : 0;
  c.equation = [=](const auto& arrays, const double* q, const double* k, size_t, size_t) {
    double sum = 0;
    for (size_t x = 0; x < in; ++x)
      for (size_t y = 0; y < out; ++y) sum += q[x] * arrays[0][offset + x * out + y] * k[y];
    return 0.5 * sum;
  };
  return c;
}

class BilinearTest : public TargetTest {};

TEST_P(BilinearTest, AgreesWithTheEquation) {
  for (auto [in, out] : {std::pair<size_t, size_t>{1, 1}, {3, 5}, {16, 17}})
    for (auto [nq, nk] : awkward_sizes()) {
      check_both(bilinear(nq, nk, in, out, nk % 2 == 0), make_bilinear<double>,
                 make_bilinear<float>);
      if (HasFatalFailure()) return;
    }
  check_both(bilinear(5, 9, 3, 4, true), make_bilinear<double>, make_bilinear<float>, true);
}

FOVEA_FOR_EVERY_TARGET(BilinearTest);

}  // namespace
}  // namespace fovea::engine::testing
