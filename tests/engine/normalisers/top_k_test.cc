#include <algorithm>
#include <numeric>

#include "tests/engine/bounds.h"
#include "tests/engine/normalisers/normaliser_check.h"

namespace fovea::engine::testing {
namespace {

RowFunction top_k(size_t k) {
  return [k](const std::vector<double>& e, double* lse) {
    std::vector<size_t> order(e.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return e[x] > e[y]; });
    order.resize(std::min(k, order.size()));
    double sum = 0;
    for (size_t j : order) sum += std::exp(e[j] - e[order[0]]);
    std::vector<double> a(e.size(), 0);
    for (size_t j : order) a[j] = std::exp(e[j] - e[order[0]]) / sum;
    if (lse) *lse = e[order[0]] + std::log(sum);
    return a;
  };
}

class TopKTest : public TargetTest {};

TEST_P(TopKTest, AgreesWithSorting) {
  for (size_t k : {1, 2, 5, 8, 40})
    for (double spread : {0.0, 1.0, 1e4})
      for (size_t n : {1, 2, 7, 15, 16, 17, 67, 1023}) {
        check_normaliser<double>({TopK{static_cast<int64_t>(k)}, make_top_k<double>}, top_k(k), n,
                                 spread, true);
        check_normaliser<float>({TopK{static_cast<int64_t>(k)}, make_top_k<float>}, top_k(k), n,
                                spread, true);
        if (HasFatalFailure()) FAIL() << "k " << k << ", n " << n << ", spread " << spread;
      }
}

TEST_P(TopKTest, TiesGoToTheLowerPosition) {
  // Few distinct scores, so that the k-th is one of many equal ones.
  for (size_t n : {9, 64, 300}) {
    std::vector<double> scores(n);
    for (size_t c = 0; c < n; ++c) scores[c] = static_cast<double>((c * 7919) % 3);
    for (size_t k : {1, 3, 4, 20}) {
      const NormaliserRig<float> rig({TopK{static_cast<int64_t>(k)}, make_top_k<float>});
      const auto solved = rig.solve(scores, 1, n);
      const auto want = top_k(k)(scores, nullptr);
      for (size_t c = 0; c < n; ++c)
        FOVEA_ASSERT_CLOSE(solved.weights[c], want[c], bounds::rounded(1))
            << "n " << n << ", k " << k << ", column " << c;
      for (size_t columns : {size_t{16}, n}) {
        const auto again = rig.weights_again(scores, 1, n, solved, columns);
        for (size_t c = 0; c < n; ++c) FOVEA_ASSERT_CLOSE(again[c], want[c], bounds::rounded(1));
      }
    }
  }
}

TEST_P(TopKTest, GradientAgreesWithDifferences) {
  for (int64_t k : {1, 3, 50})
    for (size_t n : {1, 5, 16, 41})
      check_gradient({TopK{k}, make_top_k<double>}, top_k(static_cast<size_t>(k)), n, true, false);
}

TEST_P(TopKTest, RefusesWhatIsNotANumber) {
  check_refusals<float>({TopK{2}, make_top_k<float>});
  check_refusals<double>({TopK{20}, make_top_k<double>});
}

FOVEA_FOR_EVERY_TARGET(TopKTest);

}  // namespace
}  // namespace fovea::engine::testing
