#include <cmath>

#include "tests/engine/normalisers/normaliser_check.h"

namespace fovea::engine::testing {
namespace {

// The score itself.
std::vector<double> unnormalised(const std::vector<double>& e, double*) { return e; }

class UnnormalisedTest : public TargetTest {};

TEST_P(UnnormalisedTest, AgreesWithTheEquation) {
  for (double spread : {0.0, 0.01, 1.0, 30.0})
    for (size_t n : {1, 2, 15, 16, 17, 33, 67, 300}) {
      check_normaliser<double>({Unnormalised{}, make_unnormalised<double>}, unnormalised, n, spread,
                               false);
      check_normaliser<float>({Unnormalised{}, make_unnormalised<float>}, unnormalised, n, spread,
                              false);
      if (HasFatalFailure()) FAIL() << "n " << n << ", spread " << spread;
    }
}

TEST_P(UnnormalisedTest, GradientAgreesWithDifferences) {
  for (size_t n : {1, 5, 16, 41})
    check_gradient({Unnormalised{}, make_unnormalised<double>}, unnormalised, n, false, false);
}

TEST_P(UnnormalisedTest, RefusesWhatIsNotANumber) {
  check_refusals<float>({Unnormalised{}, make_unnormalised<float>});
  check_refusals<double>({Unnormalised{}, make_unnormalised<double>});
}

FOVEA_FOR_EVERY_TARGET(UnnormalisedTest);

}  // namespace
}  // namespace fovea::engine::testing
