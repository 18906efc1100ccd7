// The programs on tensor cores where rows, keys and numbers are unusual, with rows of 32 columns and
// with rows of 128, which lie in panels.
#include "tests/torch/tensor_cores.h"

#include <limits>

namespace fovea {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class TensorCores : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { at::manual_seed(11); }
  at::Tensor rows(at::IntArrayRef sizes) const {
    std::vector<int64_t> all = sizes.vec();
    all.push_back(GetParam());
    return at::randn(all, at::TensorOptions(at::kBFloat16));
  }
  // Grouped heads, and lengths that are no multiples of a tile.
  Call call() const {
    return {rows({2, 4, 133}), rows({2, 2, 140}), rows({2, 2, 140}), {}, {}, 0, 7};
  }
};

TEST_P(TensorCores, ABiasHidesPairsAndWholeRows) {
  Call given = call();
  at::Tensor bias = at::randn({4, 133, 140});
  bias.masked_fill_(at::rand(bias.sizes()) < 0.3, -kInfinity);
  bias.select(1, 5).fill_(-kInfinity);
  given.choices = {Score(Dot{}).bias(bias), Softmax{}, Prefix{70}};
  check_tensor_cores(given, 0.06, /*of_arrays=*/0);
  // One number for each key, whatever the query.
  given.choices = {Score(Dot{-0.2}).bias(at::randn({1, 1, 1, 140})), Softmax{}, Dense{}};
  given.key_lengths = at::tensor({101, 0}, at::kInt);
  check_tensor_cores(given, 0.06, /*of_arrays=*/0);
}

TEST_P(TensorCores, PackedSequencesMayBeEmpty) {
  const auto offsets = [](std::vector<int> x) { return at::tensor(x, at::kInt); };
  Call given{rows({210, 4}), rows({230, 2}), rows({230, 2}), {}, {}, 0, 7};
  given.choices = {
      Score(Dot{}).soft_cap(3), Softmax{},
      Causal{} & Ragged{offsets({0, 100, 100, 130, 210}), offsets({0, 90, 93, 93, 230})}};
  check_tensor_cores(given, 0.06);
}

TEST_P(TensorCores, QueriesStandAnywhereAmongTheKeys) {
  Call given = call();
  given.query_offset = at::tensor({40, -60}, at::kInt);
  given.choices = {Dot{}, Softmax{at::tensor({0.3f, -0.2f, 0.0f, 1.0f})},
                   Causal{} & Window{64, -1}};
  check_tensor_cores(given, 0.06);
}

TEST_P(TensorCores, HeadsMayLieInsideTheSequence) {
  Call given = call();
  given.query = rows({2, 133, 4}).transpose(1, 2);
  given.key = rows({2, 140, 2}).transpose(1, 2);
  given.value = rows({2, 2, 150}).slice(2, 3, 143);
  given.dropout_p = 0.4;
  given.choices = {Dot{-0.1}, Sigmoid{}, Causal{Alignment::kBottomRight}};
  check_tensor_cores(given, 0.06);
}

TEST_P(TensorCores, WhatIsNoNumberStaysInItsRow) {
  Call given = call();
  given.query[0][1][7].fill_(NAN);
  given.query[1][2][130].fill_(NAN);
  given.choices = {Dot{}, Softmax{}, Causal{} & Window{50, 0}};
  check_tensor_cores(given, 0.06);
}

INSTANTIATE_TEST_SUITE_P(Widths, TensorCores, testing::Values(32, 128));

}  // namespace
}  // namespace fovea
