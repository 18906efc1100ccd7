// The device texts that find thresholds on tensor cores, whose matrix instructions the host emulates,
// against the composed formula.
#include <cmath>

#include "tests/torch/tensor_cores.h"

namespace fovea {
namespace {

at::Tensor integers(std::vector<int> x) { return at::tensor(x, at::kInt); }

// Each normaliser with rows of 32 columns and with rows of 128, which lie in panels.
struct Chosen {
  const char* name;
  Normaliser normaliser;
  int64_t width;
};
std::ostream& operator<<(std::ostream& out, const Chosen& row) {
  return out << row.name << ", " << row.width << " columns";
}

class Thresholds : public testing::TestWithParam<Chosen> {
 protected:
  void SetUp() override { at::manual_seed(17); }
  at::Tensor rows(at::IntArrayRef sizes, at::ScalarType type = at::kBFloat16) const {
    std::vector<int64_t> all = sizes.vec();
    all.push_back(GetParam().width);
    return at::randn(all, at::TensorOptions(type));
  }
  // Grouped heads, and lengths that are no multiples of a tile.
  Call call(at::ScalarType type = at::kBFloat16) const {
    return {rows({2, 4, 83}, type), rows({2, 2, 140}, type), rows({2, 2, 140}, type), {}, {}, 0, 7};
  }
  void check(Call given, const Score& score, const Structure& structure,
             double bound = 0.06) const {
    given.choices = {score, GetParam().normaliser, structure};
    ASSERT_TRUE(cuda::forward_program(canonical(given)).has_lists);
    check_tensor_cores(given, bound, /*of_arrays=*/0);
  }
};

TEST_P(Thresholds, AgreeWithTheComposedFormula) {
  check(call(), Dot{}, Causal{});
  check(call(), Dot{-0.3}, Causal{Alignment::kBottomRight});
  check(call(at::kHalf), Dot{}, Dense{}, 0.01);
}

TEST_P(Thresholds, ReadModifiersAndDropWeights) {
  Call given = call();
  given.dropout_p = 0.25;
  const Score score = Score(Dot{}).soft_cap(4).alibi(at::tensor({0.1f, 0.2f, 0.3f, 0.4f}));
  given.choices = {score, GetParam().normaliser, Causal{} & Window{60, -1}};
  check_tensor_cores(given, 0.06);  // with the slopes' gradient
  const Score relative = Score(Dot{}).relative(at::randn({7, GetParam().width}), {}, 3);
  given.choices = {relative, GetParam().normaliser, Window{50, 20}};
  check_tensor_cores(given, 0.06);
}

TEST_P(Thresholds, SeeNoPadding) {
  Call given = call();
  given.key_lengths = integers({97, 0});
  given.key.slice(2, 97) = NAN;
  given.value.slice(2, 97) = INFINITY;
  check(given, Dot{},
        Documents{at::arange(83).div(50, "floor").to(at::kInt),
                  at::arange(140).div(40, "floor").to(at::kInt)});
  check(given, Dot{}, Prefix{70});
}

// Weights for more keys than a list holds, for some rows and for all.
TEST_P(Thresholds, GiveManyKeysWeight) {
  Call given = call();
  given.query.slice(2, 20, 40) *= 0.01;
  check(given, Dot{}, Causal{});
  given.query *= 0.01;
  check(given, Dot{}, Causal{});
}

// Of equal scores the k-th is the earliest that fill k.
TEST_P(Thresholds, TakeTheEarlierOfTies) {
  Call given = call();
  given.key = given.key.slice(2, 0, 5).repeat({1, 1, 28, 1});
  check(given, Dot{}, Causal{});
}

TEST_P(Thresholds, ABiasHidesPairsAndWholeRows) {
  at::Tensor bias = at::randn({4, 83, 140});
  bias.masked_fill_(at::rand(bias.sizes()) < 0.3, -INFINITY);
  bias.select(1, 5).fill_(-INFINITY);
  check(call(), Score(Dot{}).bias(bias), Prefix{70});
}

TEST_P(Thresholds, PackedSequencesMayBeEmpty) {
  const Call given{rows({210, 4}), rows({230, 2}), rows({230, 2}), {}, {}, 0, 7};
  check(given, Dot{},
        Causal{} & Ragged{integers({0, 100, 100, 130, 210}), integers({0, 90, 93, 93, 230})});
}

TEST_P(Thresholds, WhatIsNoNumberStaysInItsRow) {
  Call given = call();
  given.query[0][1][7].fill_(NAN);
  given.query[1][2][80].fill_(NAN);
  check(given, Dot{}, Causal{});
}

INSTANTIATE_TEST_SUITE_P(Rows, Thresholds,
                         testing::Values(Chosen{"sparsemax", Sparsemax{}, 128},
                                         Chosen{"entmax", Entmax{1.5}, 32},
                                         Chosen{"top_k", TopK{5}, 32},
                                         Chosen{"top_k", TopK{63}, 128}));

TEST(ThresholdsOnTensorCores, ServeAnyAlpha) {
  at::manual_seed(18);
  const auto rows = [](int64_t length) {
    return at::randn({1, 2, length, 32}, at::TensorOptions(at::kBFloat16));
  };
  Call call{rows(40), rows(150), rows(150), {}, {}, 0, 7};
  for (const double alpha : {1.2, 2.5}) {  // many keys, few
    call.choices = {Dot{}, Entmax{alpha}, Causal{Alignment::kBottomRight}};
    check_tensor_cores(call, 0.06);
  }
}

TEST(ThresholdsOnTensorCores, DeclineWhatListsCannotFind) {
  const auto rows = [](int64_t length) {
    return at::randn({1, 2, length, 32}, at::TensorOptions(at::kBFloat16));
  };
  Call call{rows(40), rows(50), rows(50), {}, {}, 0, 7};
  const auto has_lists = [&](const Normaliser& normaliser) {
    call.choices = {Dot{}, normaliser, Dense{}};
    return cuda::forward_program(canonical(call)).has_lists;
  };
  EXPECT_TRUE(has_lists(Entmax{2.5}));
  EXPECT_FALSE(has_lists(Entmax{1}));
  EXPECT_FALSE(has_lists(Entmax{1.5, at::tensor({1.5f})}));
  EXPECT_TRUE(has_lists(TopK{63}));
  EXPECT_FALSE(has_lists(TopK{64}));
  EXPECT_FALSE(has_lists(Hard{}));
  EXPECT_EQ(cuda::off_tensor_cores(call), "a normaliser of another kind");
  EXPECT_FALSE(has_lists(Softmax{}));
  EXPECT_EQ(cuda::off_tensor_cores(call), "");
}

}  // namespace
}  // namespace fovea
