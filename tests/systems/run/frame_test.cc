// Every verb over a small system: train, evaluate, predict, explain, repeats, folds, resume; and
// what users get wrong.
#include <gtest/gtest.h>
#include <signal.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "explain/explanation.h"
#include "systems/run/session.h"
#include "train/descent/fit.h"
#include "train/interrupt.h"
#include "train/run/tensor_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

class Frame : public testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(testing::TempDir()) / ("fovea_frame_" + std::to_string(getpid()));
    fs::remove_all(base_);
    fs::create_directories(base_);
  }
  void TearDown() override { fs::remove_all(base_); }

  systems::TrainRequest request(const std::string& name) const {
    return {.system = "marked-item", .set = {"epochs=12"}, .out = base_ / name};
  }
  static Json run(const systems::TrainRequest& request) {
    train::Progress silent(train::Progress::Style::kSilent);
    return systems::train(request, silent);
  }
  static std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  template <class Error, class Call>
  static void expect_error(const std::string& part, Call&& call) {
    try {
      call();
      ADD_FAILURE() << "expected an error with: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }

  fs::path base_;
};

TEST_F(Frame, LearnsAndEveryVerbWorks) {
  const Json trained = run(request("run"));
  EXPECT_GT(trained.at("metrics").at("accuracy").get<double>(), 0.97);
  EXPECT_GT(trained.at("attention").at("hit_rate").get<double>(), 0.97);
  for (const char* file :
       {"config.json", "model.safetensors", "metrics.jsonl", "state.safetensors"})
    EXPECT_TRUE(fs::exists(base_ / "run" / file)) << file;

  const Json judged = systems::evaluate(base_ / "run", "", "test");
  EXPECT_EQ(judged.at("metrics"), trained.at("metrics"));
  EXPECT_EQ(judged.at("items"), 240);
  std::vector<std::string> fields;
  for (const auto& [name, value] : judged.items()) fields.push_back(name);
  EXPECT_EQ(fields, (std::vector<std::string>{"system", "data", "split", "items", "seed", "metrics",
                                              "attention", "seconds", "signature"}));

  systems::Run opened = systems::open(base_ / "run");
  std::istringstream lines("0 1 2* 3\n4* 0\n");
  std::ostringstream answers;
  systems::predict(opened, {lines, "lines"}, answers);
  EXPECT_TRUE(answers.str().starts_with("2\t")) << answers.str();
  EXPECT_NE(answers.str().find("\n4\t"), std::string::npos) << answers.str();

  const auto pictures = systems::explain(opened, nullptr);
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_NO_THROW(explain::check(pictures[0]));
  EXPECT_EQ(pictures[0].system, "marked-item");
  EXPECT_GT(pictures[0].maps[0].dense[1], 0.9);
  EXPECT_TRUE(pictures[0].plots.empty());
  const auto learned = systems::learning(opened);
  ASSERT_TRUE(learned);
  EXPECT_NO_THROW(explain::check(*learned));
  ASSERT_EQ(learned->plots.size(), 2u);
  EXPECT_EQ(learned->plots[1].y_label, "accuracy");
  EXPECT_EQ(learned->plots[0].curves.front().label, "training loss");
  EXPECT_EQ(learned->plots[0].curves.back().label, "validation loss");
}

TEST_F(Frame, ALineWithoutAnAnswerIsNamedAndTheNextOneIsRead) {
  auto untrained = request("run");
  untrained.set = {"epochs=0"};
  run(untrained);
  systems::Run opened = systems::open(base_ / "run");
  const std::string text = "0 1 2* 3\nnothing\n\xFF\n4* 0\n";
  std::istringstream lines(text), again(text);
  std::ostringstream answers, until_then;
  std::vector<std::string> refused;
  systems::predict(opened,
                   {lines, "lines", [&](const std::string& error) { refused.push_back(error); }},
                   answers);
  ASSERT_EQ(refused.size(), 2u);
  EXPECT_TRUE(refused[0].starts_with("lines:2: ")) << refused[0];
  EXPECT_TRUE(refused[1].starts_with("lines:3: expected UTF-8")) << refused[1];
  const std::string out = answers.str();
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 4) << out;
  EXPECT_NE(out.find("\n\n\n"), std::string::npos) << "answers keep in step: " << out;

  expect_error<InvalidArgument>("lines:2: ", [&] {
    systems::predict(opened, {again, "lines"}, until_then);
  });
  EXPECT_EQ(until_then.str(), out.substr(0, out.find('\n') + 1));
}

TEST_F(Frame, OneEpochIsNoLearningCurve) {
  auto once = request("once"), twice = request("twice");
  once.set = {"epochs=1"};
  twice.set = {"epochs=2"};
  run(once);
  run(twice);
  EXPECT_FALSE(systems::learning(systems::open(base_ / "once")));
  const auto learned = systems::learning(systems::open(base_ / "twice"));
  ASSERT_TRUE(learned);
  ASSERT_EQ(learned->plots.size(), 2u);
  EXPECT_EQ(learned->plots[1].y_label, "accuracy");
  EXPECT_EQ(learned->plots[1].curves[0].x.size(), 2u);
}

TEST_F(Frame, SameSeedSameWeightsOtherSeedOthers) {
  auto one = request("a"), two = request("b"), three = request("c");
  for (auto* r : {&one, &two, &three}) r->set = {"epochs=2"};
  three.seed = 2;
  run(one);
  run(two);
  run(three);
  EXPECT_EQ(contents(base_ / "a/model.safetensors"), contents(base_ / "b/model.safetensors"));
  EXPECT_NE(contents(base_ / "a/model.safetensors"), contents(base_ / "c/model.safetensors"));
}

TEST_F(Frame, MoreEpochsContinueARun) {
  auto whole = request("whole"), part = request("part");
  run(whole);
  part.set = {"epochs=5"};
  run(part);
  part.set = {"epochs=12"};
  part.resume = true;
  run(part);
  EXPECT_EQ(contents(base_ / "whole/model.safetensors"),
            contents(base_ / "part/model.safetensors"));
  EXPECT_EQ(contents(base_ / "whole/metrics.jsonl"), contents(base_ / "part/metrics.jsonl"));
}

TEST_F(Frame, AveragesTheWeightsOfTheLastEpochs) {
  std::vector<std::map<std::string, torch::Tensor>> last;
  for (const char* epochs : {"2", "3", "4"}) {
    auto one = request(std::string("until-") + epochs);
    one.set = {std::string("epochs=") + epochs, "keep=last"};
    run(one);
    last.push_back(
        train::read_tensors((base_ / one.out.filename() / "model.safetensors").string()).tensors);
  }
  auto mean = request("mean");
  mean.set = {"epochs=3", "keep=last", "average=3"};
  run(mean);
  mean.set[0] = "epochs=4";
  mean.resume = true;  // what was kept before comes back
  run(mean);
  for (const auto& [name, tensor] :
       train::read_tensors((base_ / "mean/model.safetensors").string()).tensors) {
    const torch::Tensor expected =
        (last[0][name].to(torch::kDouble) + last[1][name] + last[2][name]) / 3;
    EXPECT_LE((tensor - expected).abs().max().item<double>(),
              1e-7 * expected.abs().max().item<double>())
        << name;
  }
}

TEST_F(Frame, AveragesTheWeightsOfTheBestEpochs) {
  auto one = request("one"), all = request("all"), last = request("last");
  for (auto* r : {&one, &all, &last}) r->set = {"epochs=3"};
  all.set.push_back("average=3");
  last.set.insert(last.set.end(), {"keep=last", "average=3"});
  for (auto* r : {&one, &all, &last}) run(*r);
  // Of three epochs the three best are the three last; the best alone is another thing.
  const auto weights = [&](const char* name) {
    return train::read_tensors((base_ / name / "model.safetensors").string()).tensors;
  };
  const auto a = weights("all"), b = weights("last"), c = weights("one");
  double other = 0;
  for (const auto& [name, tensor] : a) {
    EXPECT_LE((tensor - b.at(name)).abs().max().item<double>(), 1e-6);
    other = std::max(other, (tensor - c.at(name)).abs().max().item<double>());
  }
  EXPECT_GT(other, 1e-4);
}

TEST_F(Frame, WithoutValidationTheLastEpochsAreAveraged) {
  auto best = request("best"), last = request("last"), one = request("one");
  for (auto* r : {&best, &last, &one}) {
    r->system = "mil";
    r->set = {"bags=8", "test_bags=2", "epochs=2", "rate=0.01"};
  }
  best.set.push_back("average=2");
  last.set.insert(last.set.end(), {"keep=last", "average=2"});
  for (auto* r : {&best, &last, &one}) run(*r);
  const auto weights = [&](const char* name) {
    return train::read_tensors((base_ / name / "model.safetensors").string()).tensors;
  };
  const auto a = weights("best"), b = weights("last"), c = weights("one");
  double other = 0;
  for (const auto& [name, tensor] : a) {
    EXPECT_TRUE(torch::equal(tensor, b.at(name))) << name;
    other = std::max(other, (tensor - c.at(name)).abs().max().item<double>());
  }
  EXPECT_GT(other, 1e-4);
}

TEST_F(Frame, InterruptSavesAndResumesToTheSameWeights) {
  auto whole = request("whole"), stopped = request("stopped");
  run(whole);
  // The signal arrives while the run is under way, as Ctrl-C does.
  std::thread hand([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    kill(getpid(), SIGINT);
  });
  {
    const train::InterruptGuard
        outer;  // a run that was quicker than the hand must not end the test
    try {
      run(stopped);
    } catch (const train::Interrupted& error) {
      EXPECT_NE(std::string(error.what()).find("--resume"), std::string::npos);
    }
    hand.join();
  }
  stopped.resume = true;
  run(stopped);
  EXPECT_EQ(contents(base_ / "whole/model.safetensors"),
            contents(base_ / "stopped/model.safetensors"));
}

TEST_F(Frame, RepeatsAndFoldsGiveMeansAndSpread) {
  auto repeated = request("seeds");
  repeated.set = {"epochs=1"};
  repeated.seeds = 3;
  const Json report = run(repeated);
  ASSERT_EQ(report.at("runs").size(), 3u);
  double mean = 0;
  for (const Json& one : report.at("runs"))
    mean += one.at("metrics").at("accuracy").get<double>() / 3;
  EXPECT_NEAR(report.at("metrics").at("accuracy").get<double>(), mean, 1e-12);
  EXPECT_TRUE(report.at("spread").at("metrics").contains("accuracy"));
  EXPECT_EQ(systems::evaluate(base_ / "seeds", "", "test").at("metrics"), report.at("metrics"));
  EXPECT_NO_THROW(systems::open(base_ / "seeds"));

  auto folded = request("folds");
  folded.set = {"epochs=1"};
  folded.folds = 4;
  const Json folds = run(folded);
  ASSERT_EQ(folds.at("runs").size(), 4u);
  EXPECT_EQ(folds.at("runs")[0].at("items"), 300);

  auto one = request("one");
  one.set = {"epochs=1"};
  one.folds = 4;
  one.only = "fold-3";
  EXPECT_EQ(run(one).at("metrics"), folds.at("runs")[2].at("metrics"));
  one.only = "";  // a RUN that was begun is not another's
  expect_error<UsageError>("holds an unfinished run already", [&] { run(one); });
  one.only = "fold-5";
  expect_error<UsageError>("expected one of fold-1, fold-2", [&] { run(one); });
}

TEST_F(Frame, MistakesAreNamed) {
  expect_error<UsageError>("did you mean 'marked-item'", [&] { systems::find("marked-itme"); });
  auto wrong = request("wrong");
  wrong.set = {"clases=3"};
  expect_error<UsageError>("did you mean 'classes'", [&] { run(wrong); });
  wrong.set = {"classes=three"};
  expect_error<UsageError>("expected an integer, 2 to 100", [&] { run(wrong); });
  wrong.set = {"classes=1"};
  expect_error<UsageError>("expected an integer, 2 to 100", [&] { run(wrong); });
  wrong.set = {"optimiser=adma"};
  expect_error<UsageError>("did you mean 'adam'", [&] { run(wrong); });
  wrong.set = {"monitor=bleu", "epochs=1"};
  expect_error<UsageError>("expected one of accuracy", [&] { run(wrong); });
  wrong.set = {};
  wrong.epochs = -1;
  expect_error<UsageError>("--epochs -1: expected at least 0", [&] { run(wrong); });
  EXPECT_FALSE(fs::exists(base_ / "wrong")) << "refused before anything was saved";
  expect_error<InvalidArgument>("no manifest.json there",
                                [&] { systems::open(base_ / "nothing"); });

  auto done = request("done");
  done.set = {"epochs=1"};
  run(done);
  expect_error<UsageError>("holds a run already", [&] { run(done); });
  done.resume = true;
  done.set = {"epochs=1", "rate=0.5"};
  expect_error<UsageError>("was started with rate", [&] { run(done); });
  expect_error<UsageError>("expected train, validation or test",
                           [&] { systems::evaluate(base_ / "done", "", "tset"); });
  std::ofstream(base_ / "done/model.safetensors", std::ios::binary) << "garbage";
  expect_error<InvalidArgument>("model.safetensors", [&] { systems::open(base_ / "done"); });
  std::ofstream(base_ / "done/config.json") << "{";
  expect_error<InvalidArgument>("config.json: damaged", [&] { systems::open(base_ / "done"); });
}

TEST(Docs, TheExampleIsTheOneThatRuns) {
  const char* source = std::getenv("FOVEA_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "run through ctest";
  const auto contents = [&](const char* name) {
    std::ifstream file(fs::path(source) / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string example = contents("tests/systems/run/example_system.cc");
  ASSERT_FALSE(example.empty());
  EXPECT_NE(contents("docs/adding-a-system.md").find(example), std::string::npos)
      << "docs/adding-a-system.md does not show tests/systems/run/example_system.cc as it is";
}

}  // namespace
}  // namespace fovea
