#include <cmath>

#include "tests/engine/normalisers/normaliser_check.h"

namespace fovea::engine::testing {
namespace {

// K / sum K.
std::vector<double> kernel_ratio(const std::vector<double>& e, double*) {
  double sum = 0;
  for (double x : e) sum += x;
  std::vector<double> a;
  for (double x : e) a.push_back(x / sum);
  return a;
}

class KernelRatioTest : public TargetTest {};

TEST_P(KernelRatioTest, AgreesWithTheEquation) {
  for (double spread : {0.01, 1.0, 30.0})
    for (size_t n : {1, 2, 15, 16, 17, 33, 67, 300}) {
      check_normaliser<double>({KernelRatio{}, make_kernel_ratio<double>}, kernel_ratio, n, spread,
                               false);
      check_normaliser<float>({KernelRatio{}, make_kernel_ratio<float>}, kernel_ratio, n, spread,
                              false);
      if (HasFatalFailure()) FAIL() << "n " << n << ", spread " << spread;
    }
}

TEST_P(KernelRatioTest, GradientAgreesWithDifferences) {
  for (size_t n : {1, 5, 16, 41})
    check_gradient({KernelRatio{}, make_kernel_ratio<double>}, kernel_ratio, n, false, false);
}

TEST_P(KernelRatioTest, RefusesWhatIsNotANumber) {
  check_refusals<float>({KernelRatio{}, make_kernel_ratio<float>});
  check_refusals<double>({KernelRatio{}, make_kernel_ratio<double>});
}

// Kernels that are all 0 reach no neighbour: the row is empty, not refused.
TEST_P(KernelRatioTest, ASumOfZeroIsAnEmptyRow) {
  const NormaliserRig<float> rig({KernelRatio{}, make_kernel_ratio<float>});
  const Solved solved = rig.solve({0, 0, 0, 1, 0, 3}, 2, 3);
  EXPECT_EQ(solved.weights, (std::vector<double>{0, 0, 0, 0.25, 0, 0.75}));
  EXPECT_EQ(solved.carry, (std::vector<double>{0, 1}));
}

FOVEA_FOR_EVERY_TARGET(KernelRatioTest);

}  // namespace
}  // namespace fovea::engine::testing
