// Memory networks: linear start, supervision, and every verb on stories of one's own.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <sstream>

#include "data/story_set.h"
#include "systems/memory_network/model.h"
#include "systems/memory_network/view.h"
#include "systems/system.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::memory_network {
namespace {

constexpr nn::MemoryOptions kSmall{.words = 12, .width = 6, .hops = 2, .slots = 4};

nn::Remembered two_stories() {
  static const std::vector<std::vector<int64_t>> lines = {{4, 5}, {6, 7, 8}, {9}};
  static const std::vector<int64_t> support = {2, 0};
  const std::vector<nn::Asked> asked = {{lines, {10, 5}, support},
                                        {std::span(lines).first(2), {11}, {}}};
  return nn::pack_stories(asked, {.slots = 4});
}

TEST(MemoryNetworkModel, LinearStartReadsWithoutSoftmaxAndTheWeightsRememberIt) {
  torch::manual_seed(1);
  Model model(kSmall, Training::kEndToEnd);
  const nn::Stories stories = two_stories().stories;
  const auto first_hop = [&] { return model.recall(stories).hops.at(1).query[0].flatten(); };
  const torch::Tensor soft = first_hop();
  model.set_reading(Reading::kLinear);
  const nn::Recall linear = model.recall(stories);
  const nn::Hop& hop = linear.hops[0];
  const torch::Tensor key = hop.key.slice(0, 0, 3).squeeze(1),
                      value = hop.value.slice(0, 0, 3).squeeze(1), u = hop.query[0].flatten();
  EXPECT_TRUE(torch::allclose(first_hop(), u + value.t().mv(key.mv(u)), 1e-5, 1e-6));
  EXPECT_FALSE(torch::allclose(first_hop(), soft));
  Model other(kSmall, Training::kEndToEnd);
  const torch::NoGradGuard guard;
  for (const auto& buffer : model.named_buffers())
    other.named_buffers()[buffer.key()].copy_(buffer.value());
  EXPECT_TRUE(other.reads_linearly()) << "a buffer, saved with the weights";
}

TEST(MemoryNetworkModel, SupervisionIsTheLogarithmOfTheWeightOfTheSupportingLine) {
  torch::manual_seed(2);
  Model model(kSmall, Training::kSupervised);
  const nn::Remembered batch = two_stories();
  const nn::Recall recall = model.recall(batch.stories);
  double expected = 0;
  for (size_t hop = 0; hop < 2; ++hop) {
    const nn::Hop& read = recall.hops[hop];
    const torch::Tensor all = weights(read.query, read.key, read.choices).weights;
    expected -= std::log(all[0][0][0][batch.support[0][hop]].item<double>()) / 2;
  }
  const torch::Tensor loss = model.support_loss(recall, batch);
  EXPECT_NEAR(loss.item<double>(), expected, 1e-5);
  loss.backward();
  model.eval();
  const nn::Recall hard = model.recall(batch.stories);
  const nn::Hop& read = hard.hops[0];
  const torch::Tensor one = weights(read.query, read.key, read.choices).weights[0].flatten();
  EXPECT_EQ(one.max().item<float>(), 1) << "used, it reads one line";
}

class MemoryNetworkRuns : public test::Runs {
 protected:
  // A run of little, and what it says to an input.
  void train_small(const std::vector<std::string>& set = {}) const {
    std::vector<std::string> all = {"stories=64", "width=8", "epochs=2"};
    all.insert(all.end(), set.begin(), set.end());
    train("run", {.system = "memory-network", .set = all});
  }
  struct Said {
    std::string answers;
    std::vector<std::string> notes, refused;
  };
  Said say(const std::string& text) const {
    systems::Run run = systems::open(base_ / "run");
    std::istringstream lines(text);
    std::ostringstream answers;
    Said out;
    predict(run,
            {lines, "input", [&](const std::string& e) { out.refused.push_back(e); },
             [&](const std::string& n) { out.notes.push_back(n); }},
            answers);
    out.answers = answers.str();
    return out;
  }
};

TEST_F(MemoryNetworkRuns, EveryVerbWorksAndAnswersComeAfterQuestionsOnly) {
  train_small();
  check_every_verb("run", "Mary went to the kitchen.\nWhere is Mary?\n");
  const Said said = say(
      "Mary went to the kitchen.\nWhere is Mary?\n\nJohn moved to the garden.\nWhere is John?\n");
  EXPECT_EQ(std::count(said.answers.begin(), said.answers.end(), '\n'), 2) << said.answers;
  EXPECT_NE(said.answers.find("lines 1 1 1"), std::string::npos) << said.answers;
  EXPECT_TRUE(said.notes.empty());
  EXPECT_EQ(say("1 Mary went to the kitchen.\n2 Where is Mary?\tkitchen\t1\n").answers,
            say("{\"story\": [\"Mary went to the kitchen.\"], \"question\": \"Where is Mary?\"}\n")
                .answers);
}

TEST_F(MemoryNetworkRuns, WhatAReaderOfAnAnswerShouldKnowIsSaid) {
  train_small({"slots=3"});
  EXPECT_EQ(say("Bill went to the kitchen.\nWhere is Bill?\n").notes,
            std::vector<std::string>{"input:2: never seen in training: 'bill'"});
  const Said empty = say("Where is Mary?\n");
  EXPECT_EQ(empty.notes, std::vector<std::string>{"input:1: no story before the question"});
  EXPECT_TRUE(empty.answers.ends_with("\tno line\n")) << empty.answers;
  std::string story;
  for (int i = 0; i < 5; ++i) story += "Mary went to the kitchen.\n";
  const Said longer = say(story + "Where is Mary?\n");
  EXPECT_EQ(longer.notes,
            std::vector<std::string>{"input:6: a story of 5 lines: the memory holds the newest 3"});
  const Said wrong = say("1 Mary went to the kitchen.\n7 Where is Mary?\n");
  EXPECT_EQ(wrong.refused, std::vector<std::string>{"input:2: line number 7, expected 2 or 1"});
}

// The newest line is all there is: its weight is 1 in every hop.
TEST_F(MemoryNetworkRuns, AMemoryOfOneLineReadsTheNewest) {
  train_small({"slots=1", "linear_start=false"});
  const std::string story =
      "Mary went to the kitchen.\nJohn moved to the garden.\nWhere is John?\n";
  check_every_verb("run", story);
  EXPECT_NE(say(story).answers.find("lines 2 2 2"), std::string::npos) << say(story).answers;
  systems::Run run = systems::open(base_ / "run");
  std::istringstream lines(story);
  Input input{lines, "input"};
  const auto pictures = systems::explain(run, &input);
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures[0].maps.at(0).dense, (std::vector<float>{1, 1, 1}));
}

TEST_F(MemoryNetworkRuns, FiguresByTaskAndNotesOnWhatCouldNotBeKnown) {
  train_small({"slots=2"});
  std::ofstream(base_ / "own.txt")
      << "1 Mary went to the kitchen.\n2 John moved to the garden.\n3 Julie moved to the office.\n"
         "4 Where is Mary?\tkitchen\t1\n5 Where is Julie?\tmoon\t3\n";
  const Json own = evaluate(base_ / "run", (base_ / "own.txt").string(), "test");
  const std::string notes = own.at("notes").dump();
  EXPECT_NE(notes.find("1 questions have an answer never seen in training: they count as wrong"),
            std::string::npos)
      << notes;
  EXPECT_NE(notes.find("1 questions rest on a line older than the 2 that the memory holds"),
            std::string::npos)
      << notes;
  EXPECT_GE(own.at("metrics").at("error").get<double>(), 0.5);
  const Json generated = evaluate(base_ / "run", "", "test");
  for (const char* name : {"error", "error_one-line", "error_two-lines", "failed_tasks"})
    EXPECT_TRUE(generated.at("metrics").contains(name)) << name;
  EXPECT_TRUE(generated.at("attention").contains("hit_rate_right_two-lines") ||
              generated.at("metrics").at("error_two-lines") == 1);
}

TEST(MemoryNetworkPicture, CountsTheFactsThatWereRead) {
  explain::Explanation one;
  one.outcome = "garden, p = 0.9, which is right";
  one.keys = {{.text = "took"}, {.text = "went"}, {.text = "slept"}};
  one.queries = {{.text = "hop 1"}, {.text = "hop 2"}};
  one.maps = {{.dense = {0.8f, 0.1f, 0.1f, 0.2f, 0.7f, 0.1f}}};
  one.truth = explain::Truth{.sure = {{.query = 0, .key = 0}, {.query = 0, .key = 1}}};
  EXPECT_EQ(facts_read(one), 2);
  one.truth->sure.push_back({.query = 0, .key = 2});
  EXPECT_EQ(facts_read(one), 0) << "a line that was not read";
  one.truth->sure.pop_back();
  one.outcome = "hall, p = 0.9; right: garden";
  EXPECT_EQ(facts_read(one), 0);
}

TEST_F(MemoryNetworkRuns, LearnsWherePersonsAre) {
  const Json report = train("run", {.system = "memory-network",
                                    .set = {"stories=800", "training=supervised", "epochs=12",
                                            "optimiser=adam", "rate=0.02", "hops=2"}});
  EXPECT_LT(report.at("metrics").at("error_one-line").get<double>(), 0.1);
  EXPECT_GT(report.at("attention").at("hit_rate_one-line").get<double>(), 0.9);
}

TEST_F(MemoryNetworkRuns, BabiFolderIsReadWhole) {
  const std::string folder = data_folder("babi");
  if (folder.empty()) GTEST_SKIP() << "FOVEA_DATA has no babi";
  const data::StorySet all = data::read_story_set(folder + "/en", {});
  EXPECT_EQ(all.tasks.size(), 20u);
  EXPECT_EQ(all.tasks.back(), "qa20");
  EXPECT_EQ(all.splits.test.size(), 20000u);
  EXPECT_EQ(all.splits.train.size() + all.splits.validation.size(), 20000u);
  const data::StorySet large = data::read_story_set(folder + "/en-10k", {.tasks = {"qa1", "qa3"}});
  EXPECT_EQ(large.left_out, std::vector<std::string>{"qa3"});
  EXPECT_EQ(large.splits.train.size() + large.splits.validation.size(), 10000u);
}

}  // namespace
}  // namespace fovea::systems::memory_network
