#include <algorithm>

#include "tests/engine/normalisers/normaliser_check.h"

namespace fovea::engine::testing {
namespace {

// By bisection on the definition.
RowFunction entmax(double alpha) {
  return [alpha](const std::vector<double>& e, double*) {
    const double most = *std::max_element(e.begin(), e.end());
    const auto weight = [&](double x, double tau) {
      const double z = (alpha - 1) * (x - most) - tau;
      return z > 0 ? std::pow(z, 1 / (alpha - 1)) : 0.0;
    };
    double low = -1, high = 0;
    for (int step = 0; step < 200; ++step) {
      const double tau = (low + high) / 2;
      double sum = 0;
      for (double x : e) sum += weight(x, tau);
      (sum >= 1 ? low : high) = tau;
    }
    std::vector<double> a;
    double sum = 0;
    for (double x : e) a.push_back(weight(x, low)), sum += a.back();
    for (double& x : a) x /= sum;
    return a;
  };
}

class EntmaxTest : public TargetTest {};

TEST_P(EntmaxTest, AgreesWithBisection) {
  for (double alpha : {1.05, 1.3, 1.5, 1.9, 2.0, 2.5, 4.0})
    for (double spread : {0.0, 1.0, 20.0, 1e4})
      for (size_t n : {1, 2, 15, 16, 17, 67, 300}) {
        check_normaliser<double>({Entmax{.alpha = alpha, .alpha_tensor = {}}, make_entmax<double>},
                                 entmax(alpha), n, spread);
        check_normaliser<float>({Entmax{.alpha = alpha, .alpha_tensor = {}}, make_entmax<float>},
                                entmax(static_cast<float>(alpha)), n, spread, false,
                                alpha > 3 ? 3e-4 : 4e-6);  // a cube root of a difference
        if (HasFatalFailure()) FAIL() << "alpha " << alpha << ", n " << n << ", spread " << spread;
      }
}

TEST_P(EntmaxTest, GradientAgreesWithDifferences) {
  for (double alpha : {1.2, 1.5, 2.0})
    for (size_t n : {1, 5, 16, 41}) {
      check_gradient({Entmax{.alpha = alpha, .alpha_tensor = {}}, make_entmax<double>},
                     entmax(alpha), n, false, false);
      if (HasFatalFailure()) FAIL() << "alpha " << alpha << ", n " << n;
    }
}

TEST_P(EntmaxTest, AlphaHasAGradient) {
  std::vector<double> alpha = {9, 1.4}, gradient = {0, 0};
  const View values = View::of(alpha.data(), DType::kFloat64, {2}),
             wanted = View::of(gradient.data(), DType::kFloat64, {2});
  const Normaliser choice = Entmax{.alpha_tensor = values}, place = Entmax{.alpha_tensor = wanted};
  const NormaliserRig<double> rig(choice, make_entmax<double>, &place);
  const size_t rows = 3, n = 13;
  const std::vector<double> scores = random_rows(rows, n, 1, 8),
                            d_weights = random_rows(rows, n, 1, 9);
  std::vector<double> da = d_weights;
  for (double& x : da) x = std::isinf(x) ? 0 : x;
  double partial = 0;
  rig.backward(scores, rows, n, rig.solve(scores, rows, n), da, std::vector<double>(rows, 0),
               &partial);
  rig.stage().store_parameters(1, &partial);
  const auto loss = [&](double a) {
    double sum = 0;
    for (size_t r = 0; r < rows; ++r) {
      const auto w = masked_row(entmax(a), scores.data() + r * n, n, nullptr);
      for (size_t c = 0; c < n; ++c) sum += da[r * n + c] * w[c];
    }
    return sum;
  };
  EXPECT_EQ(gradient[0], 0);
  EXPECT_NEAR(gradient[1], (loss(1.4 + 1e-5) - loss(1.4 - 1e-5)) / 2e-5, 1e-6);
}

TEST_P(EntmaxTest, KnownRows) {
  const NormaliserRig<float> rig({Entmax{}, make_entmax<float>});
  const auto row = rig.solve({1, 0.5, -1}, 1, 3).weights;
  EXPECT_NEAR(row[0], 0.6740, 5e-5);
  EXPECT_NEAR(row[1], 0.3260, 5e-5);
  EXPECT_EQ(row[2], 0);
  EXPECT_EQ(rig.solve({2, 0}, 1, 2).weights, (std::vector<double>{1, 0}));
  EXPECT_EQ(rig.solve({-3}, 1, 1).weights, (std::vector<double>{1}));
}

TEST_P(EntmaxTest, RefusesWhatIsNotANumber) {
  check_refusals<float>({Entmax{}, make_entmax<float>});
  check_refusals<double>({Entmax{.alpha = 1.2, .alpha_tensor = {}}, make_entmax<double>});
}

FOVEA_FOR_EVERY_TARGET(EntmaxTest);

}  // namespace
}  // namespace fovea::engine::testing
