#include <cmath>

#include "tests/engine/normalisers/normaliser_check.h"

namespace fovea::engine::testing {
namespace {

// 1 / (1 + exp(-e)).
std::vector<double> sigmoid(const std::vector<double>& e, double*) {
  std::vector<double> a;
  for (double x : e) a.push_back(1 / (1 + std::exp(-x)));
  return a;
}

class SigmoidTest : public TargetTest {};

TEST_P(SigmoidTest, AgreesWithTheEquation) {
  for (double spread : {0.0, 0.01, 1.0, 30.0, 1e4})
    for (size_t n : {1, 2, 15, 16, 17, 33, 67, 300}) {
      check_normaliser<double>({Sigmoid{}, make_sigmoid<double>}, sigmoid, n, spread, false);
      check_normaliser<float>({Sigmoid{}, make_sigmoid<float>}, sigmoid, n, spread, false);
      if (HasFatalFailure()) FAIL() << "n " << n << ", spread " << spread;
    }
}

TEST_P(SigmoidTest, GradientAgreesWithDifferences) {
  for (size_t n : {1, 5, 16, 41})
    check_gradient({Sigmoid{}, make_sigmoid<double>}, sigmoid, n, false, false);
}

TEST_P(SigmoidTest, RefusesWhatIsNotANumber) {
  check_refusals<float>({Sigmoid{}, make_sigmoid<float>});
  check_refusals<double>({Sigmoid{}, make_sigmoid<double>});
}

FOVEA_FOR_EVERY_TARGET(SigmoidTest);

}  // namespace
}  // namespace fovea::engine::testing
