// One training, from the data to a published RUN: one system with its options, one seed, one fold.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "systems/system.h"
#include "train/progress.h"
#include "train/run/draft.h"
#include "train/task.h"
#include "train/types.h"

namespace fovea::train {
class Ranks;
}

namespace fovea::systems {

inline constexpr const char* kNextTraining = "rank 0 to begin a training, or to end";
// What rank 0 says of a training once it has the draft, which the others do not see.
inline constexpr const char *kFinished = "finished", *kUnfinished = "unfinished";

class MemberTraining {
 public:
  // `ranks`: those that train together; null: this process trains alone.
  MemberTraining(const System& system, const RunOptions& run_options, Json config,
                 train::Ranks* ranks = nullptr);

  // Reads the items, prints a summary, and prepares what must be known before the model can be
  // built. Afterwards the configuration has the sha256 of what was read.
  void read(train::Progress& progress);
  const Json& config() const { return config_; }
  // The model; one that is too large is refused before there is a draft.
  void build();
  // Trains, continuing from the state in the draft if there is one, and publishes.
  void fit(train::Draft& draft, double save_every_seconds, train::Progress& progress);
  // Fits and evaluates as a rank that is not the first, and writes nothing.
  void follow(train::Progress& progress);
  // What `evaluate` returns for the test split.
  Json report();

 private:
  void agree() const;
  void write_assets(train::Draft& draft);

  const System& system_;
  const RunOptions run_options_;
  Json config_;
  train::Ranks* const ranks_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::string data_sum_, split_;
  std::unique_ptr<Task> task_;
  std::shared_ptr<torch::nn::Module> model_;
};

}  // namespace fovea::systems
