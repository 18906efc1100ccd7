// Stacked attention: regions see themselves alone, gradients, padding, and every verb.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>

#include "systems/generate.h"
#include "systems/stacked_attention/model.h"
#include "systems/system.h"
#include "tests/nn/differences.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::stacked_attention {
namespace {

Shape small(const std::string& question = "lstm") {
  return {.words = 9,
          .answers = 4,
          .width = 6,
          .attention = 5,
          .grid = 2,
          .side = 8,
          .question = question};
}

struct Asked {
  torch::Tensor pictures, words, lengths;
};
Asked two(torch::ScalarType type) {
  return {torch::randn({2, 3, 8, 8}, type), torch::tensor({{2, 3, 4}, {5, 6, 0}}, torch::kInt64),
          torch::tensor({3, 2}, torch::kInt64)};
}

TEST(StackedAttentionModel, ARegionShowsItsOwnPixelsAndItsPlace) {
  torch::manual_seed(1);
  Model model(small());
  Asked asked = two(torch::kFloat32);
  const torch::Tensor before = model.regions(asked.pictures);
  asked.pictures[0].slice(1, 0, 4).slice(2, 4, 8).add_(1);  // row 0, column 1
  const torch::Tensor moved = (model.regions(asked.pictures) - before).abs().sum(2);
  for (int64_t region = 0; region < 4; ++region)
    EXPECT_EQ(moved[0][region].item<float>() != 0, region == 1) << region;
  const torch::Tensor blank = model.regions(torch::zeros({1, 3, 8, 8}))[0];
  EXPECT_FALSE(torch::allclose(blank[0], blank[3])) << "equal pixels in different places differ";
}

TEST(StackedAttentionModel, RegionsAreWhatTheConvolutionsMakeOfCells) {
  torch::manual_seed(3);
  for (const auto& [grid, side] : {std::pair<int64_t, int64_t>{2, 8}, {1, 6}, {3, 6}}) {
    Shape shape = small();
    shape.grid = grid;
    shape.side = side;
    Model model(shape);
    model.to(torch::kFloat64);
    const auto p = model.named_parameters();
    const torch::Tensor pictures = torch::randn({2, 3, side, side}, torch::kFloat64);
    const int64_t patch = side / grid / 2;
    const torch::Tensor f =
        torch::relu(torch::conv2d(torch::relu(torch::conv2d(pictures, p["conv1.weight"],
                                                            p["conv1.bias"], patch)),
                                  p["conv2.weight"], p["conv2.bias"], 2))
            .flatten(2)
            .transpose(1, 2);
    const torch::Tensor step = torch::linspace(-3, 3, grid, torch::kFloat64),
                        where =
                            torch::stack({step.repeat_interleave(grid), step.repeat({grid})}, 1);
    const torch::Tensor expected =
        torch::tanh(torch::cat({f, where.expand({2, -1, -1})}, 2).matmul(p["region.weight"].t()) +
                    p["region.bias"]);
    EXPECT_TRUE(torch::allclose(model.regions(pictures), expected, 1e-10, 1e-12)) << grid;
  }
}

// With weights so small that tanh is a straight line every question would look alike, and training would
// stay there for thousands of steps: half of the weight moved was 0.0002 then.
TEST(StackedAttentionModel, ANewModelLooksElsewhereForAnotherQuestion) {
  double moved = 0;
  constexpr int kSeeds = 3;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    torch::manual_seed(seed);
    Model model({.words = 20, .answers = 5});
    const torch::Tensor pictures = torch::rand({16, 3, 32, 32}) * 2 - 1;
    const auto first_look = [&](int64_t word) {
      const torch::Tensor words =
          torch::cat({torch::full({16, 4}, 4, torch::kInt64), torch::full({16, 1}, word)}, 1);
      return Model::weights_of(model.look(pictures, words, torch::full({16}, 5, torch::kInt64)), 0);
    };
    moved += (first_look(7) - first_look(8)).abs().sum(1).mean().item<double>() / (2 * kSeeds);
  }
  EXPECT_GT(moved, 0.005);
}

TEST(StackedAttentionModel, NarrownessMakesTheFirstLooksOfANewModelNarrow) {
  const auto heaviest = [](double narrowness) {
    torch::manual_seed(1);
    Model model({.words = 20, .answers = 5, .narrowness = narrowness});
    const Look look = model.look(torch::rand({16, 3, 32, 32}) * 2 - 1,
                                 torch::randint(2, 20, {16, 5}, torch::kInt64),
                                 torch::full({16}, 5, torch::kInt64));
    return Model::weights_of(look, 0).amax(1).mean().item<double>();
  };
  EXPECT_GT(heaviest(8), 2 * heaviest(1));
  EXPECT_NEAR(heaviest(0), 1.0 / 16, 1e-6);
}

TEST(StackedAttentionModel, HopsFollowTheEquations) {
  torch::manual_seed(2);
  Shape shape = small();
  shape.attention = shape.width;
  Model model(shape);
  model.to(torch::kFloat64);
  const auto p = model.named_parameters();
  {
    // W_Q is the identity: a hop asks with its state.
    const torch::NoGradGuard guard;
    for (const char* hop : {"state1", "state2"}) {
      p[std::string(hop) + ".weight"].copy_(torch::eye(6));
      p[std::string(hop) + ".bias"].zero_();
    }
  }
  const Asked asked = two(torch::kFloat64);
  const Look look = model.look(asked.pictures, asked.words, asked.lengths);
  const torch::Tensor v = model.regions(asked.pictures);
  torch::Tensor u = look.query[0].flatten(1);
  for (size_t hop = 0; hop < 2; ++hop) {
    EXPECT_TRUE(torch::allclose(look.query[hop].flatten(1), u, 1e-10, 1e-12));
    const std::string k = std::to_string(hop + 1);
    const torch::Tensor e = torch::tanh(u.unsqueeze(1) + v.matmul(p["region" + k + ".weight"].t()))
                                .matmul(p["weight" + k]);
    const torch::Tensor a = e.softmax(1);
    EXPECT_TRUE(torch::allclose(Model::weights_of(look, hop), a, 1e-10, 1e-12));
    u = u + (a.unsqueeze(2) * v).sum(1);
  }
  EXPECT_TRUE(
      torch::allclose(look.logits, u.matmul(p["out.weight"].t()) + p["out.bias"], 1e-10, 1e-12));
}

TEST(StackedAttentionModel, GradientsAgreeWithFiniteDifferences) {
  for (const char* question : {"lstm", "cnn"}) {
    torch::manual_seed(3);
    Model model(small(question));
    model.to(torch::kFloat64);
    const Asked asked = two(torch::kFloat64);
    const torch::Tensor cotangent = torch::randn({2, 4}, torch::kFloat64);
    const auto value = [&] {
      return (model.look(asked.pictures, asked.words, asked.lengths).logits * cotangent).sum();
    };
    SCOPED_TRACE(question);
    nn::test::expect_gradients_of_differences(value, model, {.padding = 6});
  }
}

TEST(StackedAttentionModel, PaddingChangesNothing) {
  for (const char* question : {"lstm", "cnn"}) {
    torch::manual_seed(4);
    Model model(small(question));
    const Asked asked = two(torch::kFloat32);
    const torch::Tensor logits = model.look(asked.pictures, asked.words, asked.lengths).logits;
    const torch::Tensor padded = torch::constant_pad_nd(asked.words, {0, 7});
    EXPECT_TRUE(torch::allclose(model.look(asked.pictures, padded, asked.lengths).logits, logits,
                                1e-6, 1e-6))
        << question;
  }
}

TEST(StackedAttentionModel, ASideThatTheGridDoesNotPartIsRefused) {
  Shape shape = small();
  shape.side = 9;
  try {
    Model model(shape);
    ADD_FAILURE() << "taken";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "side: 9, expected a multiple of 4 (twice the grid)");
  }
}

class StackedAttentionRuns : public test::Runs {};

TEST_F(StackedAttentionRuns, EveryVerbWorks) {
  generate({.system = "stacked-attention", .set = {"pictures=40"}, .out = base_ / "data"});
  const std::string folder = (base_ / "data").string();
  const Json report = train(
      "run",
      {.system = "stacked-attention", .data = folder, .set = {"epochs=2", "width=12", "batch=16"}});
  EXPECT_TRUE(report.at("attention").contains("hit_rate_hop2"));
  const std::string line =
      folder + "/pictures.idx#3\twhat colour is the thing left of the purple circle\n";
  check_every_verb("run", line);
  check_blank_line("run", line);
  systems::Run run = systems::open(base_ / "run");
  std::istringstream lines(line + "none.png\twhat\n");
  std::ostringstream answers;
  std::vector<std::string> notes, refused;
  predict(run,
          {lines, "input", [&](const std::string& e) { refused.push_back(e); },
           [&](const std::string& n) { notes.push_back(n); }},
          answers);
  EXPECT_EQ(notes, std::vector<std::string>{"input:1: never seen in training: 'purple'"});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].find("none.png"), std::string::npos) << refused[0];
}

TEST_F(StackedAttentionRuns, AnswersOutsideOfTheListCountAsWrongAndVotesAreShared) {
  generate({.system = "stacked-attention", .set = {"pictures=16"}, .out = base_ / "data"});
  train("run", {.system = "stacked-attention",
                .data = (base_ / "data").string(),
                .set = {"epochs=1", "width=12", "batch=16"}});
  const auto judged = [&](const std::string& answers) {
    std::filesystem::remove_all(base_ / "own");
    std::filesystem::create_directories(base_ / "own");
    std::filesystem::copy(base_ / "data/pictures.idx", base_ / "own/pictures.idx");
    std::ofstream(base_ / "own/questions.jsonl")
        << "{\"picture\": \"pictures.idx#0\", \"question\": \"what colour\", " + answers + "}\n";
    return evaluate(base_ / "run", (base_ / "own").string(), "test");
  };
  const Json outside = judged("\"answer\": \"beige\"");
  EXPECT_EQ(outside.at("metrics").at("accuracy").get<double>(), 0);
  EXPECT_NE(outside.at("notes").dump().find("outside of the list"), std::string::npos);
  const Json shared = judged(
      "\"answers\": [\"red\", \"green\", \"blue\", \"yellow\", \"purple\", \"red\", \"green\", "
      "\"blue\", \"yellow\", \"purple\"]");
  EXPECT_NEAR(shared.at("metrics").at("accuracy").get<double>(), 2.0 / 3, 1e-9);
}

}  // namespace
}  // namespace fovea::systems::stacked_attention
