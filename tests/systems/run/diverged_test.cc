// A training that ran away stops and says so; what is not a number is never judged, kept or loaded.
#include <torch/torch.h>

#include <cmath>

#include "systems/system.h"
#include "tests/systems/run/runs.h"
#include "train/descent/finite.h"
#include "train/descent/fit.h"
#include "train/task.h"

namespace fovea::systems {
namespace {

class Diverged : public test::Runs {
 protected:
  // What training said instead of a report.
  std::string said(const TrainRequest& request) const {
    try {
      return "a report: " + train("run", request).dump();
    } catch (const InvalidArgument& error) {
      return error.what();
    }
  }
};

TEST_F(Diverged, TheStepTheLossAndWhatToTryAreNamed) {
  const std::string pooled =
      said({.system = "word-sum", .set = {"rate=1e36", "optimiser=sgd"}, .threads = 1});
  EXPECT_TRUE(pooled.starts_with("the loss is ")) << pooled;
  EXPECT_NE(pooled.find(", in epoch 1: training diverged; try a lower rate"), std::string::npos)
      << pooled;
  std::filesystem::remove_all(base_ / "run");
  const std::string words =
      said({.system = "marked-item", .set = {"rate=1e30", "optimiser=sgd"}, .threads = 1});
  EXPECT_NE(words.find(" at step 2, in epoch 1: training diverged; try a lower rate (--set rate=, "
                       "now 1e+30) or clipping (--set clip=1)"),
            std::string::npos)
      << words;
}

// Finite numbers can be as wrong: gates and squashed outputs keep them so.
TEST_F(Diverged, ALossAMillionTimesTheFirstIsSaidToBeSo) {
  const std::string words =
      said({.system = "dnc",
            .set = {"sequences=60", "hidden=8", "rows=4", "width=4", "rate=1e12", "epochs=1"},
            .threads = 1});
  EXPECT_TRUE(words.starts_with("the loss is ")) << words;
  EXPECT_NE(words.find(" at the first step, at step "), std::string::npos) << words;
}

TEST_F(Diverged, TheLastStepOfAllIsNotForgotten) {
  const std::string words =
      said({.system = "marked-item", .set = {"rate=1e300", "batch=100000", "epochs=1"}});
  EXPECT_TRUE(words.starts_with("weight '")) << words;
  EXPECT_NE(words.find("' is not finite at step 1, in epoch 1: "), std::string::npos) << words;
}

// Every rule takes a rate beyond the weights' numbers, and says what came of it.
TEST_F(Diverged, ARateBeyondTheNumbersIsTheSameByEveryRule) {
  for (const char* rule : {"sgd", "adam", "adamw", "adagrad", "rmsprop", "adadelta"}) {
    const std::string words =
        said({.system = "marked-item",
              .set = {"rate=1e300", "batch=100000", "epochs=1", std::string("optimiser=") + rule}});
    EXPECT_TRUE(words.starts_with("weight '")) << rule << ": " << words;
    std::filesystem::remove_all(base_ / "run");
  }
}

// At 1e300 the first step takes every float32 weight out of the numbers. At 1e30 gates and squashed
// outputs can keep the loss finite, and kernel regression, in double, keeps its numbers at both.
TEST_F(Diverged, EverySystemThatLearnsStops) {
  const std::map<std::string, std::vector<std::string>> small = {
      {"set-outlier", {"task=expansion"}},
      {"mil", {"bags=20"}},
      {"squeeze-excitation", {"pictures=100"}},
      {"ntm", {"sequences=200"}},
      {"dnc", {"sequences=200"}},
      {"nadaraya-watson", {"learn=diagonal", "batch=16"}}};
  for (const System* system : all()) {
    const std::string& name = system->info.name;
    if (!system->recipe || name == "marked-item") continue;
    const auto more = small.find(name);
    for (const char* rate : {"rate=1e30", "rate=1e300"}) {
      std::vector<std::string> set = {rate, "epochs=1"};
      if (more != small.end()) set.insert(set.end(), more->second.begin(), more->second.end());
      const std::string words = said({.system = name, .set = set, .threads = 1});
      EXPECT_FALSE(words.starts_with("a report: ")) << name << " at " << rate << ": " << words;
      EXPECT_NE(words.find("diverged"), std::string::npos)
          << name << " at " << rate << ": " << words;
      std::filesystem::remove_all(base_ / "run");
    }
  }
}

TEST(Finite, NamesTheFirstItemThatIsNone) {
  torch::Tensor logits = torch::zeros({4, 3});
  EXPECT_NO_THROW(train::finite(logits, "logits"));
  logits[2][1] = std::nan("");
  try {
    train::finite(logits, "logits");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "logits: nan for item 2, expected finite numbers");
  }
}

TEST(Finite, WeightsThatAreNoneAreNotLoaded) {
  torch::nn::Linear model(2, 2);
  const auto given = [&](double value) {
    train::TensorMap weights = train::weights_of(*model);
    for (auto& [name, tensor] : weights) tensor = tensor.detach().clone();
    weights.at("weight")[1][1] = value;
    return weights;
  };
  EXPECT_NO_THROW(train::set_weights(*model, given(1), "model.safetensors"));
  for (const double none : {std::nan(""), HUGE_VAL}) {
    try {
      train::set_weights(*model, given(none), "model.safetensors");
      ADD_FAILURE() << "nothing was thrown";
    } catch (const InvalidArgument& error) {
      EXPECT_STREQ(error.what(),
                   "model.safetensors: weight 'weight' has entries that are not finite");
    }
  }
}

}  // namespace
}  // namespace fovea::systems
