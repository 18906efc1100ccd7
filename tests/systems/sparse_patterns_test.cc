// Sparse patterns: each against dense attention with its mask, the steps of sampling, and runs.
#include <torch/torch.h>

#include "fovea/attend.h"
#include "systems/sparse_patterns/model.h"
#include "systems/sparse_patterns/pattern.h"
#include "systems/system.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::sparse_patterns {
namespace {

constexpr Part kParts[] = {Part::kWhole, Part::kFirst, Part::kSecond};

// Lengths with a last block that is partial, whole, alone, and of one position.
TEST(Patterns, AreDenseAttentionWithTheirMask) {
  for (const auto& [name, kind] : kKinds.all) {
    for (const Part part : kParts) {
      for (const int64_t n : {1, 5, 7, 21, 50, 150}) {
        SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << ", part "
                                        << static_cast<int>(part) << ", n " << n);
        torch::manual_seed(3);
        const Pattern pattern{.kind = kind, .stride = 7, .summary = 2, .global = 3};
        std::vector<torch::Tensor> x, y;
        for (int i = 0; i < 3; ++i) {
          x.push_back(torch::randn({2, 2, n, 4}).requires_grad_());
          y.push_back(x.back().detach().clone().requires_grad_());
        }
        const torch::Tensor out = attend_pattern(x[0], x[1], x[2], pattern, part);
        const torch::Tensor scores =
            (y[0].matmul(y[1].transpose(-2, -1)) / 2.0)
                .masked_fill(~mask_of(pattern, part, n), -std::numeric_limits<float>::infinity());
        const torch::Tensor dense = scores.softmax(-1).matmul(y[2]);
        EXPECT_TRUE(torch::allclose(out, dense, 0, 1e-5));
        const torch::Tensor along = torch::randn_like(out);
        out.backward(along);
        dense.backward(along);
        for (size_t i = 0; i < 3; ++i)
          EXPECT_TRUE(torch::allclose(x[i].grad(), y[i].grad(), 0, 2e-5)) << "gradient " << i;
      }
    }
  }
}

TEST(Patterns, EveryRowContainsItselfAndNothingLater) {
  for (const auto& [name, kind] : kKinds.all)
    for (const Part part : kParts) {
      const Pattern pattern{.kind = kind, .stride = 5, .summary = 1, .global = 0};
      for (int64_t i = 0; i < 40; ++i) {
        const std::vector<int64_t> keys = keys_of(pattern, part, i);
        ASSERT_FALSE(keys.empty());
        EXPECT_EQ(keys.back(), i);
      }
      EXPECT_EQ(pairs_of(pattern, part, 40), mask_of(pattern, part, 40).sum().item<int64_t>());
    }
}

// The sets as the paper writes them, row by row.
TEST(Patterns, AreThePapersSets) {
  using Keys = std::vector<int64_t>;
  const Pattern strided{.kind = Kind::kStrided, .stride = 4};
  EXPECT_EQ(keys_of(strided, Part::kFirst, 9), (Keys{5, 6, 7, 8, 9}));
  EXPECT_EQ(keys_of(strided, Part::kSecond, 9), (Keys{1, 5, 9}));
  EXPECT_EQ(keys_of(strided, Part::kWhole, 9), (Keys{1, 5, 6, 7, 8, 9}));
  const Pattern fixed{.kind = Kind::kFixed, .stride = 4, .summary = 1};
  EXPECT_EQ(keys_of(fixed, Part::kFirst, 9), (Keys{8, 9}));
  EXPECT_EQ(keys_of(fixed, Part::kSecond, 9), (Keys{3, 7, 9}));
  EXPECT_EQ(keys_of(fixed, Part::kWhole, 11), (Keys{3, 7, 8, 9, 10, 11}));
  const Pattern block{.kind = Kind::kBlock, .stride = 4, .global = 2};
  EXPECT_EQ(keys_of(block, Part::kWhole, 13), (Keys{0, 1, 8, 9, 10, 11, 12, 13}));
}

// Cross-check 4 of the systems.
TEST(Patterns, AWindowAsWideAsTheSequenceIsDense) {
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn({1, 2, 30, 4});
  EXPECT_TRUE(
      torch::allclose(attend_pattern(x, x, x, {.kind = Kind::kLocal, .stride = 30}, Part::kWhole),
                      attend(x, x, x, {.structure = Causal{}}), 1e-6, 1e-6));
}

TEST(Patterns, TwoLayersInTurnReachEverythingBefore) {
  const Pattern pattern{.kind = Kind::kStrided, .stride = 6};
  const auto mask = [&](int64_t layer) {
    return mask_of(pattern, part_of(Combination::kAlternate, layer, 0, 4), 36).to(torch::kFloat);
  };
  const torch::Tensor reached = mask(1).matmul(mask(0)).gt(0);
  EXPECT_TRUE(torch::equal(reached, torch::ones({36, 36}, torch::kBool).tril()));
  EXPECT_FALSE(torch::equal(mask(0).gt(0), reached));
}

Config small(Kind kind, Combination combination) {
  return {.side = 6,
          .width = 16,
          .heads = 4,
          .hidden = 16,
          .layers = 2,
          .pattern = {.kind = kind, .stride = 4, .summary = 2, .global = 2},
          .combination = combination};
}

// With uniform numbers at the model's own probabilities a drawn pixel tells the probability: drawing
// step by step gives the pixels that the whole picture's logits give.
TEST(Model, DrawsPixelsByTheLogitsOfTheWhole) {
  for (const auto& [name, kind] : kKinds.all) {
    for (const Combination combination :
         {Combination::kMerge, Combination::kAlternate, Combination::kHeads}) {
      torch::manual_seed(8);
      Model model(small(kind, combination));
      model.eval();
      const torch::NoGradGuard no_grad;
      for (torch::Tensor& p : model.parameters()) p.normal_(0, 0.5);
      const torch::Tensor begun = torch::randint(2, {3, 36}, torch::kLong);
      const torch::Tensor uniform = torch::rand({3, 36});
      const torch::Tensor drawn = model.completed(begun, 10, uniform);
      EXPECT_TRUE(torch::equal(drawn.narrow(1, 0, 10), begun.narrow(1, 0, 10)));
      const torch::Tensor wanted = uniform.lt(model.forward(drawn).sigmoid()).to(torch::kLong);
      EXPECT_TRUE(torch::equal(drawn.narrow(1, 10, 26), wanted.narrow(1, 10, 26)));
      EXPECT_TRUE(torch::equal(model.completed(begun, 36, uniform), begun));
    }
  }
}

TEST(Model, APixelSeesNoneAfterIt) {
  torch::manual_seed(2);
  Model model(small(Kind::kStrided, Combination::kHeads));
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& p : model.parameters()) p.normal_(0, 0.5);
  torch::Tensor a = torch::randint(2, {1, 36}, torch::kLong), b = a.clone();
  b.narrow(1, 20, 16).copy_(1 - b.narrow(1, 20, 16));
  const torch::Tensor x = model.forward(a), y = model.forward(b);
  EXPECT_TRUE(torch::allclose(x.narrow(1, 0, 21), y.narrow(1, 0, 21), 1e-5, 1e-6));
  EXPECT_FALSE(torch::allclose(x[0][21], y[0][21], 1e-5, 1e-6));
}

class PatternRuns : public test::Runs {};

TEST_F(PatternRuns, LearnAndTakeEveryVerb) {
  for (const auto& [pattern, combination] :
       {std::pair("strided", "merge"), std::pair("fixed", "alternate"), std::pair("block", "heads"),
        std::pair("local", "merge"), std::pair("dense", "merge")}) {
    SCOPED_TRACE(pattern);
    const Json report =
        train(pattern,
              {.system = "sparse-patterns",
               .set = {"pattern=" + std::string(pattern), "combination=" + std::string(combination),
                       "side=7", "pictures=300", "test_pictures=50", "width=16", "hidden=32",
                       "global=7", "warmup=10", "rate=0.005", "batch=8"},
               .epochs = 4});
    // A pixel of which nothing is known costs 1 bit.
    EXPECT_LT(report.at("metrics").at("bits").get<double>(), 0.5);
    check_every_verb(pattern, "0001100 0011000\n");
  }
}

TEST_F(PatternRuns, RowsOfAnotherLengthAreNamed) {
  train("run", {.system = "sparse-patterns",
                .set = {"side=7", "pictures=20", "test_pictures=5", "width=8", "heads=2"},
                .epochs = 1});
  systems::Run run = systems::open(base_ / "run");
  const auto message = [&](const std::string& line) {
    return said([&] {
      std::istringstream lines(line);
      std::ostringstream out;
      systems::predict(run, {lines, "input"}, out);
    });
  };
  EXPECT_EQ(message("000 1110000\n"), "input:1: a row of 3 pixels, expected 7");
  EXPECT_EQ(message("0000000 0000000 0000000 0000000 0000000 0000000 0000000 0000000\n"),
            "input:1: 8 rows, expected at most 7");
  EXPECT_NE(message("nowhere.png\n").find("nowhere.png"), std::string::npos);
  EXPECT_NE(said([&] {
              train("bad", {.system = "sparse-patterns", .set = {"stride=2", "summary=3"}});
            }).find("summary: 3, expected at most the stride, 2"),
            std::string::npos);
}

}  // namespace
}  // namespace fovea::systems::sparse_patterns
