#include <algorithm>

#include "tests/engine/bounds.h"
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

// A weight is z^p with p = 1 / (alpha - 1), and the z of a row are of the order of 1. Where z changes
// by 1, the weight changes by p z^(p - 1) = p w^(2 - alpha), and others by as much, because they add
// up to 1.
template <class T>
WeightBound power(double alpha) {
  return [alpha](std::span<const double> row) {
    double slope = 1;
    for (const double weight : row)
      if (weight > 0) slope = std::max(slope, std::pow(weight, 2 - alpha) / (alpha - 1));
    return bounds::rounded(slope, bounds::kUlpOf<T>);
  };
}

class EntmaxTest : public TargetTest {};

TEST_P(EntmaxTest, AgreesWithBisection) {
  for (double alpha : {1.05, 1.3, 1.5, 1.9, 2.0, 2.5, 4.0})
    for (double spread : {0.0, 1.0, 20.0, 1e4})
      for (size_t n : {1, 2, 15, 16, 17, 67, 300}) {
        check_normaliser<double>({Entmax{.alpha = alpha, .alpha_tensor = {}}, make_entmax<double>},
                                 entmax(alpha), n, spread, false, power<double>(alpha));
        check_normaliser<float>({Entmax{.alpha = alpha, .alpha_tensor = {}}, make_entmax<float>},
                                entmax(static_cast<float>(alpha)), n, spread, false,
                                power<float>(alpha));
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

// The gradient of the second head's alpha under the loss sum da weights, and that loss as a function
// of alpha.
struct AlphaGradient {
  explicit AlphaGradient(double alpha_of_head) {
    for (double& x : da) x = std::isinf(x) ? 0 : x;
    std::vector<double> alpha = {9, alpha_of_head};
    const View values = View::of(alpha.data(), DType::kFloat64, {2}),
               wanted = View::of(gradient.data(), DType::kFloat64, {2});
    const Normaliser choice = Entmax{.alpha_tensor = values},
                     place = Entmax{.alpha_tensor = wanted};
    const NormaliserRig<double> rig(choice, make_entmax<double>, &place);
    double partial = 0;
    rig.backward(scores, kRows, kKeys, rig.solve(scores, kRows, kKeys), da,
                 std::vector<double>(kRows, 0), &partial);
    rig.stage().store_parameters(1, &partial);
  }
  double loss(const RowFunction& weights) const {
    double sum = 0;
    for (size_t r = 0; r < kRows; ++r) {
      const auto w = masked_row(weights, scores.data() + r * kKeys, kKeys, nullptr);
      for (size_t c = 0; c < kKeys; ++c) sum += da[r * kKeys + c] * w[c];
    }
    return sum;
  }

  static constexpr size_t kRows = 3, kKeys = 13;
  const std::vector<double> scores = random_rows(kRows, kKeys, 1, 8);
  std::vector<double> da = random_rows(kRows, kKeys, 1, 9), gradient = {0, 0};
};

TEST_P(EntmaxTest, AlphaHasAGradient) {
  for (double alpha : {1.001, 1.02, 1.4, 2.3}) {
    const AlphaGradient at(alpha);
    const double step = std::min(1e-5, (alpha - 1) / 100);
    const auto slope = [&](double by) {
      return (at.loss(entmax(alpha + by)) - at.loss(entmax(alpha - by))) / (2 * by);
    };
    EXPECT_EQ(at.gradient[0], 0);
    // What the difference leaves out is about what half the step changes. Weights are powers of
    // 1 / (alpha - 1), which multiply what a score rounds.
    expect_close(
        at.gradient[1], slope(step),
        2 * std::fabs(slope(step) - slope(step / 2)) +
            bounds::difference(step, AlphaGradient::kRows * std::max(1.0, 1 / (alpha - 1))),
        std::to_string(alpha));
  }
}

std::vector<double> shares_of_exponentials(const std::vector<double>& e, double*) {
  const double most = *std::max_element(e.begin(), e.end());
  std::vector<double> a;
  double sum = 0;
  for (double x : e) a.push_back(std::exp(x - most)), sum += a.back();
  for (double& x : a) x /= sum;
  return a;
}

TEST_P(EntmaxTest, AtOneItIsSoftmaxAndATrainedAlphaBelowCountsAsOne) {
  for (double alpha : {1.0, 0.5, -7.0}) {
    std::vector<double> wide = {9, alpha};
    std::vector<float> narrow = {9, static_cast<float>(alpha)};
    const Entmax in_double{.alpha_tensor = View::of(wide.data(), DType::kFloat64, {2})},
        in_float{.alpha_tensor = View::of(narrow.data(), DType::kFloat32, {2})};
    for (size_t n : {1, 16, 67})
      for (double spread : {1.0, 20.0}) {
        check_normaliser<double>({in_double, make_entmax<double>}, shares_of_exponentials, n,
                                 spread);
        check_normaliser<float>({in_float, make_entmax<float>}, shares_of_exponentials, n, spread);
        if (HasFatalFailure()) FAIL() << "alpha " << alpha << ", n " << n << ", spread " << spread;
      }
    check_gradient({in_double, make_entmax<double>}, shares_of_exponentials, 21, false, false);
  }
  check_refusals<float>({Entmax{.alpha = 1, .alpha_tensor = {}}, make_entmax<float>});
}

TEST_P(EntmaxTest, BelowOneTheGradientOfAlphaIsThatOfOneAndLeadsBack) {
  const AlphaGradient at(1.0), below(0.3);
  // A one-sided difference whose second order is taken out.
  const double step = 1e-3, zero = at.loss(shares_of_exponentials);
  const auto slope = [&](double by) {
    const double one = at.loss(entmax(1 + by)) - zero, two = at.loss(entmax(1 + 2 * by)) - zero;
    return (4 * one - two) / (2 * by);
  };
  expect_close(at.gradient[1], slope(step),
               2 * std::fabs(slope(step) - slope(step / 2)) +
                   bounds::difference(step, AlphaGradient::kRows / step));
  EXPECT_NE(at.gradient[1], 0);
  EXPECT_EQ(below.gradient[1], at.gradient[1]);
}

TEST_P(EntmaxTest, ThereIsNoStepOnTheWayToOne) {
  // In float32 the limit takes over where it is no further from the weights (about alpha - 1) than
  // what powers of 1 / (alpha - 1) round: the square root of a unit in the last place.
  for (float alpha : {1.00001F, 1.0002F, 1.0003F, 1.001F, 1.01F})
    for (size_t n : {2, 16, 67}) {
      check_normaliser<float>({Entmax{.alpha = alpha, .alpha_tensor = {}}, make_entmax<float>},
                              entmax(alpha), n, 2, false,
                              [](auto) { return 2 * std::sqrt(bounds::kFloatUlp); });
      if (HasFatalFailure()) FAIL() << "alpha " << alpha << ", n " << n;
    }
}

TEST_P(EntmaxTest, KnownRows) {
  const NormaliserRig<float> rig({Entmax{}, make_entmax<float>});
  const auto row = rig.solve({1, 0.5, -1}, 1, 3).weights;
  expect_close(row[0], 0.6740, bounds::decimals(4));
  expect_close(row[1], 0.3260, bounds::decimals(4));
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
