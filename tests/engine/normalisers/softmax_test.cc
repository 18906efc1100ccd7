#include <algorithm>
#include <cmath>

#include "tests/engine/bounds.h"
#include "tests/engine/normalisers/normaliser_check.h"

namespace fovea::engine::testing {
namespace {

// exp(e - lse), lse = log sum exp e.
std::vector<double> softmax(const std::vector<double>& e, double* lse) {
  const double most = *std::max_element(e.begin(), e.end());
  double sum = 0;
  for (double x : e) sum += std::exp(x - most);
  if (lse) *lse = most + std::log(sum);
  std::vector<double> a;
  for (double x : e) a.push_back(std::exp(x - most) / sum);
  return a;
}

class SoftmaxTest : public TargetTest {};

TEST_P(SoftmaxTest, AgreesWithTheEquation) {
  for (double spread : {0.0, 0.01, 1.0, 30.0, 1e4})
    for (size_t n : {1, 2, 15, 16, 17, 33, 67, 300}) {
      check_normaliser<double>({Softmax{}, make_softmax<double>}, softmax, n, spread, true);
      check_normaliser<float>({Softmax{}, make_softmax<float>}, softmax, n, spread, true);
      if (HasFatalFailure()) FAIL() << "n " << n << ", spread " << spread;
    }
}

TEST_P(SoftmaxTest, GradientAgreesWithDifferences) {
  for (size_t n : {1, 5, 16, 41})
    check_gradient({Softmax{}, make_softmax<double>}, softmax, n, true, false);
}

TEST_P(SoftmaxTest, RefusesWhatIsNotANumber) {
  check_refusals<float>({Softmax{}, make_softmax<float>});
  check_refusals<double>({Softmax{}, make_softmax<double>});
}

// A sink is one more score that has no value: weights sum to less than 1, and it has a gradient.
TEST_P(SoftmaxTest, SinkTakesItsShareAndHasAGradient) {
  std::vector<double> sink = {9, 0.7}, gradient = {0, 0};
  const View values = View::of(sink.data(), DType::kFloat64, {2}),
             wanted = View::of(gradient.data(), DType::kFloat64, {2});
  const Normaliser choice = Softmax{values}, place = Softmax{wanted};
  const NormaliserRig<double> rig(choice, make_softmax<double>, &place);
  const auto with_sink = [&](const std::vector<double>& e, double* lse) {
    std::vector<double> all = e;
    all.push_back(sink[1]);  // of the rig's head
    std::vector<double> a = softmax(all, lse);
    a.pop_back();
    return a;
  };
  const size_t rows = 3, n = 13;
  check_normaliser<double>(rig, with_sink, n, 1, true);
  check_gradient(rig, with_sink, n, true, false);
  const std::vector<double> scores = random_rows(rows, n, 1, 8);
  std::vector<double> da = random_rows(rows, n, 1, 9);
  for (double& x : da) x = std::isinf(x) ? 0 : x;
  const auto loss = [&] {
    double sum = 0;
    for (size_t r = 0; r < rows; ++r) {
      const auto a = masked_row(with_sink, scores.data() + r * n, n, nullptr);
      for (size_t c = 0; c < n; ++c) sum += a[c] * da[r * n + c];
    }
    return sum;
  };
  double partial = 0;
  rig.backward(scores, rows, n, rig.solve(scores, rows, n), da, std::vector<double>(rows, 0),
               &partial);
  rig.stage().store_parameters(1, &partial);
  const double step = 1e-6, keep = sink[1];
  sink[1] = keep + step;
  const double above = loss();
  sink[1] = keep - step;
  const double below = loss();
  sink[1] = keep;
  expect_close(gradient[1], (above - below) / (2 * step), bounds::difference(step, rows));
  EXPECT_EQ(gradient[0], 0);
}

FOVEA_FOR_EVERY_TARGET(SoftmaxTest);

}  // namespace
}  // namespace fovea::engine::testing
