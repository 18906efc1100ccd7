// Image to set: losses, decoding, the seven predictors, and every verb.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "data/pictures/image.h"
#include "systems/generate.h"
#include "systems/image_to_set/encoder.h"
#include "systems/image_to_set/labels.h"
#include "systems/image_to_set/losses.h"
#include "systems/image_to_set/sets.h"
#include "systems/image_to_set/targets.h"
#include "systems/system.h"
#include "tests/nn/differences.h"
#include "tests/systems/run/runs.h"
#include "train/task.h"

namespace fovea::systems::image_to_set {
namespace {

torch::Tensor target() { return torch::tensor({{1.0, 0.0, 1.0}, {0.0, 0.0, 0.0}}); }

TEST(ImageToSetLosses, SoftIouOfCertainAnswersIsOneMinusIou) {
  const torch::Tensor sure = torch::tensor({{50.0, 50.0, -50.0}, {-50.0, -50.0, -50.0}});
  const torch::Tensor loss = soft_iou_loss(sure, target());
  EXPECT_NEAR(loss[0].item<double>(), 1 - 1.0 / 3, 1e-5);
  EXPECT_NEAR(loss[1].item<double>(), 0, 1e-5) << "IoU of two empty sets is 1";
}

TEST(ImageToSetLosses, TheTargetDistributionOfAnEmptySetIsUniform) {
  const torch::Tensor logits = torch::tensor({{1.0, 2.0, 3.0}, {1.0, 2.0, 3.0}});
  const torch::Tensor loss = distribution_loss(logits, target()), log_p = logits.log_softmax(1);
  EXPECT_NEAR(loss[0].item<double>(), -(log_p[0][0] + log_p[0][2]).item<double>() / 2, 1e-6);
  EXPECT_NEAR(loss[1].item<double>(), -log_p[1].mean().item<double>(), 1e-6);
}

TEST(ImageToSetLosses, TheEndIsNoLabelAndLaterStepsDoNotCount) {
  torch::manual_seed(1);
  const torch::Tensor sizes = torch::tensor({2, 0}, torch::kInt64);
  torch::Tensor p = torch::rand({2, 4, 4}, torch::kFloat64).softmax(2);
  const auto both = [&] {
    return (pooled_loss(p, target().to(torch::kFloat64), sizes) + end_loss(p, sizes)).clone();
  };
  const torch::Tensor before = both();
  p[0].slice(0, 3).fill_(0.9);  // behind the true end
  p[1].slice(0, 1).fill_(0.9);
  EXPECT_TRUE(torch::allclose(both(), before));
  const torch::Tensor labels = pooled_loss(p, target().to(torch::kFloat64), sizes).clone();
  p.select(2, -1).fill_(0.5);
  EXPECT_TRUE(torch::allclose(pooled_loss(p, target().to(torch::kFloat64), sizes), labels));
  // Half for the steps before, in their mean, and half for the end; an empty set has the end alone.
  const torch::Tensor end = end_loss(p, sizes);
  EXPECT_NEAR(end[0].item<double>(), std::log(2), 1e-9);
  EXPECT_NEAR(end[1].item<double>(), std::log(2) / 2, 1e-9);
}

TEST(ImageToSetLosses, PoolingTakesTheLargestProbabilityOverTheSteps) {
  torch::Tensor p = torch::zeros({1, 3, 4}, torch::kFloat64);
  p[0][0][0] = 0.8;
  p[0][1][0] = 0.1;
  p[0][1][2] = 0.6;
  const torch::Tensor loss = pooled_loss(p, torch::tensor({{1.0, 0.0, 1.0}}, torch::kFloat64),
                                         torch::tensor({2}, torch::kInt64));
  EXPECT_NEAR(loss.item<double>(), -(std::log(0.8) + std::log(0.6)) / 3, 1e-5);
}

TEST(ImageToSetLosses, DirichletCountsAddToTheSharesOfTheTraining) {
  const torch::Tensor shares = torch::tensor({0.5, 0.5, 0.0});
  const torch::Tensor p =
      dirichlet_sizes(torch::tensor({{0.0, 0.0, 0.0}, {0.0, 0.0, 3.0}}), shares).exp();
  EXPECT_TRUE(torch::allclose(p[0], shares, 1e-4, 1e-4)) << "nothing seen: the training's shares";
  EXPECT_TRUE(torch::allclose(p[1], torch::tensor({0.125, 0.125, 0.75}), 1e-4, 1e-4));
}

TEST(ImageToSetDecoding, ByThresholdMassAndSize) {
  const Bounds bounds{.largest = 3};
  const Scored scored{.labels = {0.2f, 0.7f, 0.05f, 0.7f, 0.6f},
                      .log_sizes = {std::log(0.1f), std::log(0.2f), std::log(0.7f)}};
  EXPECT_EQ(chosen(scored, Rule::kThreshold, {.threshold = 0.5}, bounds), (LabelSet{1, 3, 4}))
      << "falling, ties by number";
  EXPECT_EQ(chosen(scored, Rule::kThreshold, {.threshold = 0.1}, bounds).size(), 3u)
      << "no larger than the largest";
  EXPECT_EQ(chosen(scored, Rule::kSize, {}, bounds), (LabelSet{1, 3}));
  const Scored mass{.labels = {0.1f, 0.6f, 0.3f}};
  EXPECT_EQ(chosen(mass, Rule::kMass, {.threshold = 0.5}, bounds), LabelSet{1});
  EXPECT_EQ(chosen(mass, Rule::kMass, {.threshold = 0.7}, bounds), (LabelSet{1, 2}));
  EXPECT_EQ(chosen(mass, Rule::kMass, {.threshold = 0.7, .floor = 0.65}, bounds), LabelSet{});
  // log p(2) + log(0.7/0.5) * 2 beats the sizes 0 and 1; a threshold of 0.99 leaves nothing to gain.
  EXPECT_EQ(chosen(scored, Rule::kJoint, {.threshold = 0.5}, bounds), (LabelSet{1, 3}));
  EXPECT_EQ(chosen({.labels = {0.3f, 0.2f}, .log_sizes = {-1, -1, -1}}, Rule::kJoint,
                   {.threshold = 0.99}, bounds),
            LabelSet{});
}

TEST(ImageToSetDecoding, EmptySetsAreAllowedOrNot) {
  const Scored low{.labels = {0.1f, 0.2f}, .log_sizes = {0, -5, -9}};
  for (const Rule rule : {Rule::kThreshold, Rule::kSize, Rule::kJoint}) {
    EXPECT_EQ(chosen(low, rule, {.threshold = 0.9}, {.largest = 2}), LabelSet{});
    EXPECT_EQ(chosen(low, rule, {.threshold = 0.9}, {.largest = 2, .may_be_empty = false}),
              LabelSet{1});
  }
}

TEST(ImageToSetDecoding, TheCutIsTunedForF1) {
  // Label 0 is right above 0.8, label 1 above 0.2: one threshold must serve both.
  const std::vector<Scored> scored = {{{0.3f, 0.9f}}, {{0.35f, 0.1f}}, {{0.05f, 0.4f}}};
  const std::vector<LabelSet> truth = {{0, 1}, {0}, {1}};
  const Bounds bounds{.largest = 2};
  const Cut cut = tuned(scored, truth, Rule::kThreshold, bounds);
  EXPECT_DOUBLE_EQ(cut.threshold, 0.125) << "the first of those with F1 1";
  for (size_t i = 0; i < truth.size(); ++i) {
    LabelSet got = chosen(scored[i], Rule::kThreshold, cut, bounds);
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, truth[i]);
  }
  EXPECT_EQ(most_frequent({{0}, {0, 1}, {0, 1}, {2}}, {{0, 1}, {0}}, 3), (LabelSet{0, 1}));
}

Shape small(const std::string& predictor) {
  return {.predictor = predictor,
          .labels = 5,
          .largest = 3,
          .width = 8,
          .heads = 2,
          .layers = 2,
          .size_shares = {0.25f, 0.25f, 0.25f, 0.25f}};
}

Memory some_keys(int64_t items, int64_t keys) { return {.keys = torch::randn({items, keys, 8})}; }

TEST(ImageToSetModel, NoLabelComesTwiceAndTheEndIsNeverMasked) {
  for (const char* name : {"lstm", "transformer"}) {
    torch::manual_seed(2);
    SetPredictor model(small(name));
    model.eval();
    const torch::NoGradGuard guard;
    const Memory memory = some_keys(2, 4);
    const torch::Tensor inputs = torch::tensor(
        {{model.start(), int64_t{3}, int64_t{0}}, {model.start(), int64_t{1}, int64_t{4}}});
    const torch::Tensor logits = model.next_logits(inputs, memory);
    EXPECT_EQ(logits.size(2), 6);
    EXPECT_TRUE(logits.isneginf()[0][0].any().item<bool>() == false);
    EXPECT_TRUE(logits[0][1][3].isneginf().item<bool>());
    EXPECT_TRUE(logits[0][2][3].isneginf().item<bool>() && logits[0][2][0].isneginf().item<bool>());
    EXPECT_EQ(logits.isneginf().sum().item<int64_t>(), 6);
    EXPECT_FALSE(logits.select(2, -1).isneginf().any().item<bool>());
    for (const Named& one : model.name(some_keys(20, 4))) {
      EXPECT_LE(one.labels.size(), 3u);
      EXPECT_EQ(std::set<int64_t>(one.labels.begin(), one.labels.end()).size(), one.labels.size());
    }
  }
}

TEST(ImageToSetModel, EmptySetsAreNamedOnlyWhereTheyAreAllowed) {
  for (const bool allowed : {true, false}) {
    Shape shape = small("transformer");
    shape.may_be_empty = allowed;
    torch::manual_seed(3);
    SetPredictor model(shape);
    model.eval();
    const torch::NoGradGuard guard;
    model.named_parameters()["out.bias"][5] = 100;  // always the end
    for (const Named& one : model.name(some_keys(3, 4)))
      EXPECT_EQ(one.labels.size(), allowed ? 0u : 1u);
  }
}

TEST(ImageToSetModel, PaddedKeysAndTheOrderOfKeysChangeNothing) {
  for (const Predictor& predictor : predictors()) {
    torch::manual_seed(4);
    SetPredictor model(small(predictor.name));
    model.eval();
    const torch::NoGradGuard guard;
    const Memory memory = some_keys(2, 4);
    const std::vector<LabelSet> sets = {{0, 2}, {}};
    const double loss = model.loss(memory, sets).item<double>();
    const Memory padded{.keys = torch::cat({memory.keys, torch::full({2, 7, 8}, NAN)}, 1),
                        .lengths = torch::full({2}, 4, torch::kInt32)};
    EXPECT_NEAR(model.loss(padded, sets).item<double>(), loss, 1e-5) << predictor.name;
    EXPECT_NEAR(model.loss({memory.keys.flip(1)}, sets).item<double>(), loss, 1e-5)
        << predictor.name;
  }
}

TEST(ImageToSetModel, GradientsAgreeWithFiniteDifferences) {
  for (const Predictor& predictor : predictors())
    for (const char* cardinality : {"none", "categorical", "dirichlet"}) {
      if (predictor.steps() && std::string(cardinality) != "none") continue;
      torch::manual_seed(5);
      Shape shape = small(predictor.name);
      shape.cardinality = cardinality;
      SetPredictor model(shape);
      model.to(torch::kFloat64);
      model.eval();
      const Memory memory{torch::randn({2, 3, 8}, torch::kFloat64)};
      const std::vector<LabelSet> sets = {{1, 3}, {}};
      SCOPED_TRACE(std::string(predictor.name) + " " + cardinality);
      nn::test::expect_gradients_of_differences([&] { return model.loss(memory, sets); }, model,
                                                {.each = 3});
    }
}

TEST(ImageToSetModel, TheWeightsOfALabelAddUpToOne) {
  for (const Predictor& predictor : predictors()) {
    SetPredictor model(small(predictor.name));
    model.eval();
    const torch::NoGradGuard guard;
    const auto weights = model.weights_of(some_keys(1, 6), {4, 1});
    ASSERT_EQ(weights.size(), predictor.body == Body::kTransformer ? 2u : 1u) << predictor.name;
    EXPECT_EQ(weights[0].sizes(), (std::vector<int64_t>{2, 2, 6}));
    EXPECT_TRUE(torch::allclose(weights[0].sum(2), torch::ones({2, 2})));
    EXPECT_TRUE(model.weights_of(some_keys(1, 6), {}).empty());
  }
}

TEST(ImageToSetModel, PicturesOfAnySideGiveTheSameNumberOfRegions) {
  Encoder encoder({.grid = 3, .filters = 4, .width = 8});
  encoder.eval();
  for (const int64_t side : {8, 9, 30})
    EXPECT_EQ(encoder.forward(torch::rand({2, 3, side, side})).keys.sizes(),
              (std::vector<int64_t>{2, 9, 8}));
}

TEST(ImageToSetTargets, KnowTheTrainingAndJudgeOtherItemsByIt) {
  const Targets::Names names = {{"cat", "dog"}, {"cat"}, {"dog", "cat", "sun"}, {"cat", "moon"}};
  Targets made;
  made.choose(names, {.train = {0, 1, 2}, .validation = {}, .test = {3}}, 2);
  EXPECT_EQ(made.labels().names(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(made.largest(), 2);
  const Json kept = made.facts("things");
  Targets restored;
  restored.restore(train::Fields(kept, "facts."), "things");
  restored.encode({{"moon", "cat"}});
  EXPECT_EQ(restored.of(0), LabelSet{0});
  for (const auto& [targets, item] : {std::pair(made, 3), std::pair(restored, 0)}) {
    Evaluation out;
    targets.add_scores(out, {{0}}, {item}, "labels of these pictures");
    EXPECT_EQ(out.metrics.at("f1"), 1);
    // The simplest guess is {cat, dog}: one of two is right, and nothing is missing.
    EXPECT_DOUBLE_EQ(out.metrics.at("frequent_f1"), 2.0 / 3);
    EXPECT_EQ(out.notes.back(), "1 labels of these pictures are none of the 2 and are left out");
  }
}

TEST(ImageToSetLabels, AreTheCommonestAndUnknownOnesAreCounted) {
  const Labels labels({{"b", "a"}, {"c", "b"}, {"a", "b"}}, 2);
  EXPECT_EQ(labels.names(), (std::vector<std::string>{"b", "a"}));
  const Labels::Known known = labels.of({"c", "a", "b"});
  EXPECT_EQ(known.set, (LabelSet{0, 1}));
  EXPECT_EQ(known.unknown, 1);
  EXPECT_EQ(labels_of({"A dog in the snow .", "Two dogs play"}),
            (std::vector<std::string>{"dog", "snow", "two", "dogs", "play"}));
  EXPECT_EQ(labels_of({"dog| green grass |dog"}), (std::vector<std::string>{"dog", "green grass"}));
  EXPECT_TRUE(labels_of({"|"}).empty());
}

class ImageToSetRuns : public test::Runs {
 protected:
  static TrainRequest quick(const std::string& predictor) {
    return {.system = "image-to-set",
            .set = {"predictor=" + predictor, "pictures=64", "epochs=1", "width=16", "filters=4",
                    "heads=2", "layers=1"}};
  }
};

TEST_F(ImageToSetRuns, EveryPredictorTrainsAndIsJudged) {
  for (const Predictor& one : predictors()) {
    const Json report = train(one.name, quick(one.name));
    for (const char* metric : {"f1", "class_f1", "iou", "exact", "size_error", "frequent_f1"})
      EXPECT_TRUE(report.at("metrics").contains(metric)) << one.name << " " << metric;
  }
}

TEST_F(ImageToSetRuns, EveryVerbWorksOnFilesOfItsOwn) {
  generate({.system = "image-to-set", .set = {"pictures=40"}, .out = base_ / "data"});
  TrainRequest request = quick("ff-bce");
  request.data = (base_ / "data").string();
  const Json report = train("run", request);
  EXPECT_TRUE(report.at("attention").contains("hit_rate")) << report.dump();
  const std::string line = request.data + "/pictures.idx#3\n";
  check_every_verb("run", line);
  check_blank_line("run", line);
}

TEST_F(ImageToSetRuns, AFolderIsAnsweredPictureByPictureAndABrokenOneIsNamed) {
  train("run", quick("ff-bce"));
  std::filesystem::create_directories(base_ / "photos");
  const data::Image tiny{1, 1, 3, {9, 9, 9}}, wide{3000, 2, 3, std::vector<uint8_t>(18000, 80)};
  std::ofstream(base_ / "photos/a.png", std::ios::binary) << data::png_bytes(tiny);
  std::ofstream(base_ / "photos/b.jpg", std::ios::binary) << "\xFF\xD8\xFFnot a picture";
  std::ofstream(base_ / "photos/c.png", std::ios::binary) << data::png_bytes(wide);
  systems::Run run = systems::open(base_ / "run");
  std::istringstream lines((base_ / "photos").string() + "\n");
  std::ostringstream answers;
  std::vector<std::string> refused;
  predict(run, {lines, "input", [&](const std::string& e) { refused.push_back(e); }}, answers);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].find("b.jpg"), std::string::npos) << refused[0];
  const std::string text = answers.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
  EXPECT_NE(text.find("c.png\t"), std::string::npos) << text;
  std::istringstream again((base_ / "photos").string() + "\n");
  Input input{again, "input", [&](const std::string& e) { refused.push_back(e); }};
  EXPECT_EQ(explain(run, &input).size(), 2u) << "the others are shown";
  EXPECT_EQ(refused.size(), 2u);
}

TEST_F(ImageToSetRuns, APictureThatCannotBeReadIsLeftOutOfTheTraining) {
  std::filesystem::create_directories(base_ / "photos");
  std::string lines;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "p" + std::to_string(i) + ".png";
    const std::vector<uint8_t> pixels(48, static_cast<uint8_t>(8 * i));
    std::ofstream(base_ / "photos" / name, std::ios::binary)
        << (i == 7 ? "\x89PNG damaged" : data::png_bytes({4, 4, 3, pixels}));
    lines += name + (i % 2 == 0 ? "\tdog|snow\n" : "\tcat|\n");
  }
  std::ofstream(base_ / "photos/labels.tsv") << lines;
  TrainRequest request = quick("ff-bce");
  request.data = (base_ / "photos").string();
  train("run", request);
  const systems::Run run = systems::open(base_ / "run");
  const PictureSets read = read_picture_sets({.path = request.data}, run.run_options->options);
  ASSERT_EQ(read.pictures.notes.size(), 1u);
  EXPECT_TRUE(read.pictures.notes[0].starts_with("1 picture cannot be read, left out: "));
  EXPECT_NE(read.pictures.notes[0].find("p7.png"), std::string::npos);
  for (const auto split : {data::Split::kTrain, data::Split::kValidation, data::Split::kTest})
    for (const int64_t item : read.pictures.splits.of(split)) EXPECT_NE(item, 7);
}

TEST_F(ImageToSetRuns, EmptySetsAreReadJudgedAndRefusedWhereTheyAreNotAllowed) {
  generate({.system = "image-to-set", .set = {"pictures=32"}, .out = base_ / "own"});
  std::string lines = contents(base_ / "own/captions.jsonl");
  EXPECT_NE(lines.find("\"|\""), std::string::npos) << "some canvases are empty";
  TrainRequest request = quick("transformer");
  request.data = (base_ / "own").string();
  train("run", request);
  request.set.push_back("empty=false");
  EXPECT_NE(said([&] { train("refused", request); }).find("has no label; --set empty=true"),
            std::string::npos);
}

}  // namespace
}  // namespace fovea::systems::image_to_set
