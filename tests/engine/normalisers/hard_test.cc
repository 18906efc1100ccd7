#include <algorithm>

#include "engine/tiles/random.h"
#include "tests/engine/bounds.h"
#include "tests/engine/normalisers/normaliser_check.h"

namespace fovea::engine::testing {
namespace {

double log_sum_exp(const std::vector<double>& e) {
  const double most = *std::max_element(e.begin(), e.end());
  double sum = 0;
  for (double x : e) sum += std::exp(x - most);
  return most + std::log(sum);
}

std::vector<double> argmax(const std::vector<double>& e, double* lse) {
  std::vector<double> a(e.size(), 0);
  const size_t chosen = static_cast<size_t>(std::max_element(e.begin(), e.end()) - e.begin());
  a[chosen] = 1;
  if (lse) *lse = e[chosen] - log_sum_exp(e);
  return a;
}

class HardTest : public TargetTest {};

TEST_P(HardTest, TakesTheFirstLargest) {
  for (double spread : {0.0, 1e-9, 1.0, 1e4})
    for (size_t n : {1, 2, 7, 15, 16, 17, 67, 1023}) {
      check_normaliser<double>({Hard{}, make_hard<double>}, argmax, n, spread, true);
      check_normaliser<float>({Hard{}, make_hard<float>}, argmax, n, spread, true);
      if (HasFatalFailure()) FAIL() << "n " << n << ", spread " << spread;
    }
}

TEST_P(HardTest, LogProbabilityHasAGradient) {
  for (size_t n : {1, 5, 16, 41})
    check_gradient({Hard{}, make_hard<double>}, argmax, n, true, true);
}

TEST_P(HardTest, DrawsFollowTheSoftmax) {
  // 4,000 rows with the same three scores and a masked one: frequencies within five standard
  // deviations.
  const size_t rows = 4000, n = 4;
  std::vector<double> scores;
  for (size_t r = 0; r < rows; ++r) scores.insert(scores.end(), {0.0, 1.0, kMasked, -1.0});
  const NormaliserRig<float> rig({Hard{.sample = true}, make_hard<float>});
  const Solved solved = rig.solve(scores, rows, n), again = rig.solve(scores, rows, n);
  EXPECT_EQ(solved.weights, again.weights);
  const double total = 1 + std::exp(1.0) + std::exp(-1.0);
  const std::vector<double> p = {1 / total, std::exp(1.0) / total, 0, std::exp(-1.0) / total};
  std::vector<double> count(n, 0);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < n; ++c) {
      count[c] += solved.weights[r * n + c];
      if (solved.weights[r * n + c] == 1) {
        FOVEA_ASSERT_CLOSE(solved.lse[r], std::log(p[c]), bounds::rounded(1 - std::log(p[c])));
      }
    }
  for (size_t c = 0; c < n; ++c)
    EXPECT_LE(std::fabs(count[c] - rows * p[c]), bounds::hits(rows, p[c])) << "column " << c;
  // The choice is the first key at which the cumulative probability passes the row's number.
  const double u = random_uniform(random_row(5, 0, 1, 3));
  const size_t want = u < p[0] ? 0 : u < p[0] + p[1] ? 1 : 3;
  EXPECT_EQ(solved.weights[want], 1);
}

TEST_P(HardTest, RefusesWhatIsNotANumber) {
  check_refusals<float>({Hard{}, make_hard<float>});
  check_refusals<double>({Hard{.sample = true}, make_hard<double>});
}

FOVEA_FOR_EVERY_TARGET(HardTest);

}  // namespace
}  // namespace fovea::engine::testing
