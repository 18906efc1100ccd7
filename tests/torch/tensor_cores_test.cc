// The device texts for tensor cores, whose matrix instructions the host emulates, against the
// composed formula.
#include "tests/torch/tensor_cores.h"

#include <cmath>
#include <limits>

namespace fovea {
namespace {

TEST(KernelsOnTensorCores, AgreeWithTheComposedFormula) {
  at::manual_seed(3);
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const auto options = at::TensorOptions(type);
    const double bound = type == at::kHalf ? 0.01 : 0.06;
    const auto rows = [&](int64_t heads, int64_t length, int64_t width) {
      return at::randn({2, heads, length, width}, options);
    };
    Call call{rows(4, 133, 32), rows(2, 101, 32), rows(2, 101, 16), {}, {}, 0, 7};
    call.choices = {Score(Dot{}).soft_cap(4).alibi(at::tensor({0.1f, 0.2f, 0.3f, 0.4f})),
                    Softmax{at::tensor({0.5f})}, Causal{} & Window{40, -1}};
    call.dropout_p = 0.25;
    check_tensor_cores(call, bound);
    // What padding holds is not seen, and a row may see nothing.
    call.dropout_p = 0;
    call.choices = {Dot{}, Softmax{},
                    Documents{at::arange(133).div(50, "floor").to(at::kInt),
                              at::arange(101).div(40, "floor").to(at::kInt)}};
    call.key_lengths = at::tensor({97, 0}, at::kInt);
    call.key.slice(2, 97) = NAN;
    call.value.slice(2, 97) = INFINITY;
    check_tensor_cores(call, bound);
  }
}

// Scores that read arrays; a scale below zero and of zero; structures that are no bands.
TEST(KernelsOnTensorCores, AgreeWithTheComposedFormulaForTheirOtherStages) {
  at::manual_seed(6);
  const auto options = at::TensorOptions(at::kBFloat16);
  const auto rows = [&](int64_t heads, int64_t length) {
    return at::randn({1, heads, length, 32}, options);
  };
  Call call{rows(2, 133), rows(1, 140), rows(1, 140), {}, {}, 0, 7};
  call.choices = {Score(Dot{}).bias(at::randn({2, 133, 140})), Softmax{}, Prefix{70}};
  check_tensor_cores(call, 0.06, /*of_arrays=*/0);
  call.choices = {Score(Dot{}).relative(at::randn({7, 32}), {}, 3), Softmax{}, Window{50, 20}};
  check_tensor_cores(call, 0.06);
  call.choices = {Dot{0.3}, Softmax{}, Blocks{at::rand({5, 5}) < 0.6, 32}};
  check_tensor_cores(call, 0.06);
  call.choices = {Dot{-0.3}, Softmax{}, Causal{}};
  check_tensor_cores(call, 0.06);
  call.choices = {Dot{0.0}, Softmax{}, Window{5, 5}};
  check_tensor_cores(call, 0.06);
}

// Rows of 128 columns lie in panels, as Hopper's products want them.
TEST(KernelsOnTensorCores, AgreeWithTheComposedFormulaInPanels) {
  at::manual_seed(8);
  const auto rows = [&](int64_t heads, int64_t length, int64_t width) {
    return at::randn({1, heads, length, width}, at::TensorOptions(at::kBFloat16));
  };
  Call call{rows(2, 133, 128), rows(1, 140, 128), rows(1, 140, 128), {}, {}, 0, 7};
  call.choices = {Score(Dot{}).soft_cap(4).alibi(at::tensor({0.1f, 0.2f})), Softmax{},
                  Causal{} & Window{90, -1}};
  call.dropout_p = 0.25;
  check_tensor_cores(call, 0.06);
  call.dropout_p = 0;
  call.choices = {Dot{}, Softmax{}, Prefix{70}};
  call.key_lengths = at::tensor({130}, at::kInt);
  call.key.slice(2, 130) = NAN;
  call.value.slice(2, 130) = INFINITY;
  check_tensor_cores(call, 0.06);
}

// Few queries: the keys in parts, and one row's parts together again.
TEST(KernelsOnTensorCores, AgreeWithTheComposedFormulaForFewQueries) {
  at::manual_seed(4);
  const auto options = at::TensorOptions(at::kBFloat16);
  const auto rows = [&](int64_t heads, int64_t length, int64_t width) {
    return at::randn({2, heads, length, width}, options);
  };
  Call call{rows(4, 3, 32), rows(2, 700, 32), rows(2, 700, 48), {}, {}, 0, 7};
  call.query_offset = at::tensor({690, 300}, at::kInt);
  call.choices = {Score(Dot{}).soft_cap(4).alibi(at::tensor({0.1f, 0.2f, 0.3f, 0.4f})),
                  Softmax{at::tensor({0.5f})}, Causal{} & Window{400, -1}};
  call.dropout_p = 0.25;
  ASSERT_TRUE(cuda::forward_program(canonical(call)).decodes);
  check_tensor_cores(call, 0.06);
  // What padding holds is not seen, and a row may see nothing.
  call.dropout_p = 0;
  call.query_offset = at::Tensor();
  call.choices = {Dot{}, Softmax{}, Dense{}};
  call.key_lengths = at::tensor({97, 0}, at::kInt);
  call.key.slice(2, 97) = NAN;
  call.value.slice(2, 97) = INFINITY;
  check_tensor_cores(call, 0.06);
}

// Unusual rows, keys and numbers, with rows of 32 columns and with rows of 64 and 128, which lie in
// panels.

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

INSTANTIATE_TEST_SUITE_P(Widths, TensorCores, testing::Values(32, 64, 128));

}  // namespace
}  // namespace fovea
