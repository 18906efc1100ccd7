#include <cmath>

#include "tests/engine/normalisers/normaliser_check.h"

namespace fovea::engine::testing {
namespace {

// 1 / n, whatever the scores.
std::vector<double> uniform(const std::vector<double>& e, double*) {
  return std::vector<double>(e.size(), 1 / static_cast<double>(e.size()));
}

class UniformTest : public TargetTest {};

TEST_P(UniformTest, AgreesWithTheEquation) {
  for (double spread : {1.0, 1e4})
    for (size_t n : {1, 2, 15, 16, 17, 33, 67, 300}) {
      check_normaliser<double>({Uniform{}, make_uniform<double>}, uniform, n, spread, false);
      check_normaliser<float>({Uniform{}, make_uniform<float>}, uniform, n, spread, false);
      if (HasFatalFailure()) FAIL() << "n " << n << ", spread " << spread;
    }
}

TEST_P(UniformTest, GradientAgreesWithDifferences) {
  for (size_t n : {1, 5, 16, 41})
    check_gradient({Uniform{}, make_uniform<double>}, uniform, n, false, false);
}

FOVEA_FOR_EVERY_TARGET(UniformTest);

}  // namespace
}  // namespace fovea::engine::testing
