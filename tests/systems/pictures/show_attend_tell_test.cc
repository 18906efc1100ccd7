// Show, attend and tell: the equations, padding, the two penalties, reward, and every verb on every kind of
// data.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>

#include "data/formats/npy.h"
#include "data/formats/vocabulary.h"
#include "systems/generate.h"
#include "systems/show_attend_tell/lines.h"
#include "systems/show_attend_tell/losses.h"
#include "systems/show_attend_tell/model.h"
#include "systems/system.h"
#include "tests/nn/differences.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::show_attend_tell {
namespace {

constexpr int64_t kRegions = 4, kWidth = 3, kWords = 9;

Shape small(Looks looks = Looks::kSoft) {
  return {
      .words = kWords,
      .regions = {.side = 0, .grid = 2, .channels = 0, .array_width = kWidth, .count = kRegions},
      .embedding = 5,
      .width = 6,
      .attention = 4,
      .dropout = 0,
      .looks = looks};
}

struct Given {
  torch::Tensor pictures, words, real;
};
Given two() {
  return {torch::randn({2, kRegions, kWidth}, torch::kFloat64),
          torch::tensor({{2, 4, 5}, {2, 6, 0}}, torch::kInt64),
          torch::tensor({{1, 1, 1}, {1, 1, 0}}, torch::kInt64).to(torch::kBool)};
}

std::shared_ptr<Model> made(const Shape& shape) {
  torch::manual_seed(1);
  auto model = std::make_shared<Model>(shape);
  model->to(torch::kFloat64);
  model->eval();
  return model;
}

TEST(ShowAttendTellModel, FollowsTheEquations) {
  const auto model = made(small());
  const auto p = model->named_parameters();
  const auto linear = [&](const std::string& name, const torch::Tensor& x) {
    torch::Tensor out = x.matmul(p[name + ".weight"].t());
    return p.contains(name + ".bias") ? out + p[name + ".bias"] : out;
  };
  const Given given = two();
  const Told told = model->tell(model->see(given.pictures), given.words, given.real);
  const torch::Tensor a = given.pictures;
  torch::Tensor h = torch::tanh(linear("start_hidden", a.mean(1))),
                c = torch::tanh(linear("start_cell", a.mean(1)));
  std::vector<torch::Tensor> logits, weights;
  for (int64_t t = 0; t < 3; ++t) {
    const torch::Tensor y = p["words.weight"].index({given.words.select(1, t)});
    const torch::Tensor e =
        torch::tanh(linear("key", a) + linear("query", h).unsqueeze(1)).matmul(p["score"]);
    const torch::Tensor alpha = e.softmax(1);
    const torch::Tensor z = torch::sigmoid(linear("gate", h)) * (alpha.unsqueeze(2) * a).sum(1);
    const auto gates =
        (linear("lstm_word", y) + linear("lstm_hidden", h) + linear("lstm_context", z)).chunk(4, 1);
    c = torch::sigmoid(gates[1]) * c + torch::sigmoid(gates[0]) * torch::tanh(gates[2]);
    h = torch::sigmoid(gates[3]) * torch::tanh(c);
    logits.push_back(linear("out", y + linear("out_hidden", h) + linear("out_context", z)));
    weights.push_back(alpha);
  }
  const torch::Tensor expected = torch::stack(logits, 1).index({given.real});
  EXPECT_TRUE(torch::allclose(told.logits, expected, 1e-9, 1e-10));
  EXPECT_TRUE(torch::allclose(told.weights, torch::stack(weights, 1) * given.real.unsqueeze(2),
                              1e-9, 1e-10));
}

TEST(ShowAttendTellModel, WordByWordIsTheSameAsAtOnce) {
  for (const Looks looks : {Looks::kSoft, Looks::kHard, Looks::kNone, Looks::kStart}) {
    const auto model = made(small(looks));
    const Given given = two();
    const Seen seen = model->see(given.pictures);
    const Told told = model->tell(seen, given.words, given.real);
    State state = model->start(seen);
    for (int64_t t = 0; t < 3; ++t) {
      const Model::Step step = model->step(seen, state, given.words.select(1, t));
      EXPECT_TRUE(torch::allclose(step.logits[0], told.logits[t], 1e-9, 1e-10));
    }
  }
}

TEST(ShowAttendTellModel, WithoutAttentionTheMeanIsAllThatIsSeen) {
  for (const Looks looks : {Looks::kNone, Looks::kStart}) {
    const auto model = made(small(looks));
    const Given given = two();
    const auto logits = [&](const torch::Tensor& pictures) {
      return model->tell(model->see(pictures), given.words, given.real).logits;
    };
    const torch::Tensor before = logits(given.pictures);
    const torch::Tensor same = given.pictures.mean(1, true).expand({-1, kRegions, -1});
    EXPECT_TRUE(torch::allclose(logits(same), before, 1e-9, 1e-10));
    EXPECT_FALSE(torch::allclose(logits(2 * same), before, 1e-3, 1e-3));
    // From the first word on nothing is read of it, if the first state alone knows it.
    const torch::NoGradGuard guard;
    for (const char* name : {"lstm_context.weight", "out_context.weight"})
      model->named_parameters()[name].mul_(-3);
    EXPECT_EQ(torch::allclose(logits(given.pictures), before, 1e-9, 1e-10), looks == Looks::kStart);
  }
}

TEST(ShowAttendTellModel, HardAttentionReadsOneRegion) {
  const auto model = made(small(Looks::kHard));
  const Given given = two();
  torch::Tensor pictures = given.pictures.clone();
  const auto logits = [&] {
    return model->tell(model->see(pictures), given.words, given.real).logits;
  };
  const torch::Tensor before = logits();
  const Told told = model->tell(model->see(pictures), given.words, given.real);
  const torch::Tensor taken = told.weights[0].argmax(1);
  EXPECT_NEAR(told.weights[0][0].sum().item<double>(), 1, 1e-9) << "the weights stay soft";
  // Two regions that are not taken change places: the mean and so the first state stay as they were.
  std::vector<int64_t> others;
  for (int64_t i = 0; i < kRegions; ++i)
    if ((taken == i).sum().item<int64_t>() == 0) others.push_back(i);
  ASSERT_GE(others.size(), 2u);
  const torch::Tensor first = pictures[0][others[0]].clone();
  pictures[0][others[0]] = pictures[0][others[1]].clone();
  pictures[0][others[1]] = first;
  EXPECT_TRUE(torch::allclose(logits(), before, 1e-9, 1e-10));
}

TEST(ShowAttendTellModel, GradientsAgreeWithFiniteDifferences) {
  const auto model = made(small());
  const Given given = two();
  const torch::Tensor targets = torch::tensor({4, 5, 3, 6, 3}, torch::kInt64);
  const auto value = [&] {
    return losses(*model, model->tell(model->see(given.pictures), given.words, given.real), targets,
                  given.real, {.coverage = 0.7})
        .total;
  };
  nn::test::expect_gradients_of_differences(value, *model, {.padding = 5});
}

TEST(ShowAttendTellModel, PaddingChangesNothing) {
  const auto model = made(small());
  const Given given = two();
  const torch::Tensor targets = torch::tensor({4, 5, 3, 6, 3}, torch::kInt64);
  const auto total = [&](int64_t pads) {
    const torch::Tensor words = torch::constant_pad_nd(given.words, {0, pads}),
                        real = torch::constant_pad_nd(given.real, {0, pads});
    return losses(*model, model->tell(model->see(given.pictures), words, real), targets, real, {})
        .total.item<double>();
  };
  EXPECT_NEAR(total(7), total(0), 1e-9) << "the sums of a region's weights run over real words";
}

TEST(ShowAttendTellLosses, CoverageAddsUpOverWords) {
  const torch::Tensor weights = torch::tensor({{{0.5, 0.5}, {1.0, 0.0}}});
  const torch::Tensor real = torch::ones({1, 2}, torch::kBool);
  EXPECT_NEAR(coverage_penalty(weights, real, {.coverage = 2}).item<double>(),
              2 * (0.5 * 0.5 + 0.5 * 0.5), 1e-6);
  // Two words over two regions: one each, as before; over four it would be a half.
  EXPECT_NEAR(coverage_penalty(torch::full({1, 2, 4}, 0.25), real, {.coverage = 1, .share = true})
                  .item<double>(),
              0, 1e-6);
}

// The reward is a number: what it was computed from gets no gradient from it.
TEST(ShowAttendTellLosses, RewardMovesOnlyTheChoiceOfWhatWasDrawn) {
  torch::Tensor likelihood = torch::tensor({-1.0, -3.0}, torch::requires_grad()),
                chosen = torch::tensor({{-0.5}, {-0.7}}, torch::requires_grad()),
                weights = torch::full({2, 1, 2}, 0.5, torch::requires_grad());
  Told told;
  told.chosen = chosen;
  told.weights = weights;
  told.drawn = torch::tensor({1, 0}).to(torch::kBool);
  reinforce(told, likelihood, torch::tensor({-2.0}), {.reward = 3, .entropy = 0}).backward();
  EXPECT_FALSE(likelihood.grad().defined());
  EXPECT_NEAR(chosen.grad()[0][0].item<double>(), -3 * (-1.0 + 2.0), 1e-6)
      << "better than usual: likelier";
  EXPECT_EQ(chosen.grad()[1][0].item<double>(), 0) << "looked at softly";
}

// In expectation, reward times the gradient of the log-probability is the gradient of the expected
// log-likelihood: checked by drawing a region many times.
TEST(ShowAttendTellLosses, TheEstimateIsRightOnAverage) {
  torch::manual_seed(5);
  torch::Tensor score = torch::tensor({0.3, -0.2, 0.8}, torch::requires_grad());
  const torch::Tensor gains = torch::tensor({-1.0, -4.0, -2.0});
  (score.softmax(0) * gains).sum().backward();
  const torch::Tensor exact = score.grad().clone();
  score.mutable_grad().zero_();
  constexpr int64_t kDraws = 40000;
  const torch::Tensor alpha = score.softmax(0).expand({kDraws, -1});
  const torch::Tensor which = torch::multinomial(alpha.detach(), 1);
  Told told;
  told.chosen = alpha.gather(1, which).log();
  told.weights = alpha.unsqueeze(1);
  told.drawn = torch::ones({kDraws}, torch::kBool);
  (reinforce(told, gains.index({which.squeeze(1)}), torch::tensor({-2.0}),
             {.reward = 1, .entropy = 0}) /
   kDraws)
      .backward();
  EXPECT_TRUE(torch::allclose(-score.grad(), exact, 0, 0.02)) << -score.grad() << exact;
}

TEST(ShowAttendTellModel, HalfOfThePicturesAreDrawnAndTheBaselineMoves) {
  const auto model = made(small(Looks::kHard));
  model->train();
  const int64_t n = 200;
  const torch::Tensor pictures = torch::randn({n, kRegions, kWidth}, torch::kFloat64),
                      words = torch::full({n, 2}, 4, torch::kInt64),
                      real = torch::ones({n, 2}, torch::kBool);
  const Told told = model->tell(model->see(pictures), words, real);
  EXPECT_NEAR(told.drawn.to(torch::kFloat64).mean().item<double>(), 0.5, 0.15);
  losses(*model, told, torch::full({2 * n}, 5, torch::kInt64), real, {});
  EXPECT_LT(model->baseline.item<double>(), -0.1) << "a tenth of log p of two words";
  EXPECT_GT(model->baseline.item<double>(), -1.5);
}

TEST(ShowAttendTellLines, LongCaptionsAreCutAndCounted) {
  data::CaptionSet set;
  std::string caption;
  for (int i = 0; i < 200; ++i) caption += "word ";
  set.items = {{.image = "a", .captions = {caption, "word"}}};
  int64_t cut = 0;
  const auto lines = lines_of(set, {0}, data::Vocabulary::of({{"word"}}, {}), /*longest=*/20, cut);
  EXPECT_EQ(cut, 1);
  EXPECT_EQ(lines.at(0).ids.size(), 20u);
  EXPECT_EQ(lines.at(1).ids.size(), 1u);
}

TEST(ShowAttendTellLines, ARegionPointsAtABoxByItsMiddle) {
  const data::Box box{0.3, 0.3, 0.3, 0.3};
  EXPECT_TRUE(points_at(box, 3 * 7 + 3, 7));
  EXPECT_FALSE(points_at(box, 0, 7));
  EXPECT_TRUE(points_at({0.44, 0.4, 0.02, 0.2}, 3 * 7 + 3, 7))
      << "a thin thing is as wide as a region";
  EXPECT_FALSE(points_at({0.44, 0.4, 0.02, 0.2}, 3 * 7 + 2, 7));
}

// ---- runs ---------------------------------------------------------------------------------------

class CaptionRuns : public test::Runs {
 protected:
  const std::vector<std::string> small_ = {"epochs=2",    "width=16",   "attention=8",
                                           "embedding=8", "channels=4", "batch=16"};
  std::string folder(const char* name) const { return (base_ / name).string(); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(base_ / name, std::ios::binary) << bytes;
  }
};

TEST_F(CaptionRuns, EveryVerbWorksOnCanvases) {
  generate({.system = "show-attend-tell", .set = {"pictures=16"}, .out = base_ / "data"});
  for (const char* looks : {"soft", "hard", "none", "start"}) {
    SCOPED_TRACE(looks);
    std::vector<std::string> set = small_;
    set.insert(set.end(), {std::string("looks=") + looks, "pictures=48"});
    const Json report = train(looks, {.system = "show-attend-tell", .set = set});
    EXPECT_TRUE(report.at("metrics").contains("bleu"));
    EXPECT_TRUE(report.at("metrics").contains("cider"));
    EXPECT_EQ(report.at("attention").contains("hit_rate"),
              looks == std::string("soft") || looks == std::string("hard"));
    check_every_verb(looks, folder("data") + "/pictures.idx#1\n");
  }
}

TEST_F(CaptionRuns, AFolderOfPicturesIsAnsweredPictureByPicture) {
  generate({.system = "show-attend-tell", .set = {"pictures=24"}, .out = base_ / "data"});
  train("run", {.system = "show-attend-tell", .data = folder("data"), .set = small_});
  std::filesystem::create_directories(base_ / "photos");
  write("photos/a.png", data::png_bytes({1, 1, 3, {1, 2, 3}}));
  write("photos/b.jpg", "\xFF\xD8 damaged");
  write("photos/c.png", data::png_bytes({40, 2, 1, std::vector<uint8_t>(80, 9)}));
  systems::Run run = systems::open(base_ / "run");
  std::istringstream lines(folder("photos") + "\n");
  std::ostringstream answers;
  std::vector<std::string> refused;
  predict(run, {lines, "input", [&](const std::string& e) { refused.push_back(e); }}, answers);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].find("b.jpg"), std::string::npos) << refused[0];
  EXPECT_NE(answers.str().find("a.png\t"), std::string::npos);
  EXPECT_NE(answers.str().find("c.png\t"), std::string::npos);
}

TEST_F(CaptionRuns, ArraysOfRegionsTakeThePlaceOfPictures) {
  std::string captions, bytes;
  for (int i = 0; i < 40; ++i) {
    captions += "p" + std::to_string(i) + ".jpg\t" + (i % 2 ? "a dog runs" : "a cat sleeps") + "\n";
    for (int k = 0; k < 9 * 2; ++k) {
      const float value = i % 2 ? 1.0f : -1.0f;
      bytes.append(reinterpret_cast<const char*>(&value), 4);
    }
  }
  std::filesystem::create_directories(base_ / "own");
  write("own/captions.tsv", captions);
  write("own/regions.npy", data::npy_bytes({data::ElementType::kFloat32, {40, 9, 2}, bytes}));
  std::vector<std::string> set = small_;
  set[0] = "epochs=15";
  set.emplace_back("rate=0.02");
  const Json report =
      train("run", {.system = "show-attend-tell", .data = folder("own"), .set = set});
  EXPECT_EQ(report.at("metrics").at("exact").get<double>(), 1);
  write("one.npy", data::npy_bytes({data::ElementType::kFloat32, {9, 2}, bytes.substr(0, 72)}));
  systems::Run run = systems::open(base_ / "run");
  std::istringstream lines(folder("one.npy") + "\n");
  std::ostringstream answers;
  predict(run, {lines, "input"}, answers);
  EXPECT_NE(answers.str().find("\ta cat sleeps"), std::string::npos) << answers.str();
  check_every_verb("run", folder("one.npy") + "\n");
}

}  // namespace
}  // namespace fovea::systems::show_attend_tell
