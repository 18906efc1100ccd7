#include <algorithm>

#include "tests/engine/normalisers/normaliser_check.h"

namespace fovea::engine::testing {
namespace {

// By sorting, as the paper has it.
std::vector<double> sparsemax(const std::vector<double>& e, double*) {
  std::vector<double> z = e;
  std::sort(z.rbegin(), z.rend());
  double sum = 0, tau = 0;
  for (size_t k = 1; k <= z.size(); ++k) {
    sum += z[k - 1];
    if (1 + static_cast<double>(k) * z[k - 1] > sum) tau = (sum - 1) / static_cast<double>(k);
  }
  std::vector<double> a;
  for (double x : e) a.push_back(std::max(0.0, x - tau));
  return a;
}

class SparsemaxTest : public TargetTest {};

TEST_P(SparsemaxTest, AgreesWithSorting) {
  for (double spread : {0.0, 0.01, 1.0, 30.0, 1e4})
    for (size_t n : {1, 2, 7, 15, 16, 17, 33, 67, 1023}) {
      check_normaliser<double>({Sparsemax{}, make_sparsemax<double>}, sparsemax, n, spread);
      check_normaliser<float>({Sparsemax{}, make_sparsemax<float>}, sparsemax, n, spread);
      if (HasFatalFailure()) FAIL() << "n " << n << ", spread " << spread;
    }
}

TEST_P(SparsemaxTest, GradientAgreesWithDifferences) {
  for (size_t n : {1, 5, 16, 41})
    check_gradient({Sparsemax{}, make_sparsemax<double>}, sparsemax, n, false, false);
}

TEST_P(SparsemaxTest, KnownRows) {
  const NormaliserRig<float> rig({Sparsemax{}, make_sparsemax<float>});
  EXPECT_EQ(rig.solve({1, 0.5, -1}, 1, 3).weights, (std::vector<double>{0.75, 0.25, 0}));
  EXPECT_EQ(rig.solve({2, 0}, 1, 2).weights, (std::vector<double>{1, 0}));
  EXPECT_EQ(rig.solve({-3}, 1, 1).weights, (std::vector<double>{1}));
  EXPECT_EQ(rig.solve({5, 5, 5, 5}, 1, 4).weights, (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
}

TEST_P(SparsemaxTest, RefusesWhatIsNotANumber) {
  check_refusals<float>({Sparsemax{}, make_sparsemax<float>});
  check_refusals<double>({Sparsemax{}, make_sparsemax<double>});
}

FOVEA_FOR_EVERY_TARGET(SparsemaxTest);

}  // namespace
}  // namespace fovea::engine::testing
