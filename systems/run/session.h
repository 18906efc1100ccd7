// What the verbs do, for any system: train a RUN, open it again, judge it, use it, look into it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "explain/explanation.h"
#include "systems/system.h"
#include "train/progress.h"
#include "train/run/run_folder.h"
#include "train/types.h"

namespace torch::nn {
class Module;
}

namespace fovea::systems {

inline constexpr int64_t kMostMembers = 10'000;  // seeds times folds

struct TrainRequest {
  std::string system = {};
  std::string data = {};               // a path; empty: the system's generator
  std::vector<std::string> set = {};   // "name=value"
  std::optional<int64_t> epochs = {};  // short for set "epochs=…"
  uint64_t seed = 1;                   // initial weights, order, dropout
  uint64_t data_seed = 1;              // generated items and splits
  int64_t seeds = 1;                   // repeated runs: seed, seed + 1, …
  int64_t folds = 0;                   // cross-validation: one run for each fold (and seed)
  std::string only = {};               // of several runs this one alone: "seed-2", "fold-3"
  int threads = 0;                     // 0: as many as libtorch takes
  std::string device = "cpu";
  std::filesystem::path out = {};
  bool resume = false;     // go on with what is in `out`, or start where nothing is
  bool overwrite = false;  // replace what is in `out`
  double save_every_seconds = 20;
};

// Trains and leaves a RUN. Returns what `evaluate` says of the test split; with several seeds or
// folds, their means.
Json train(const TrainRequest&, train::Progress&);

// A RUN opened for use; every file that is read is as it was written.
struct Run {
  const System* system = nullptr;
  Json config;
  std::shared_ptr<RunOptions> run_options;
  std::shared_ptr<Task> task;
  std::shared_ptr<torch::nn::Module> model;
  std::shared_ptr<const train::RunFolder> folder;
};
// A RUN of several seeds or folds opens its best member by validation.
// `set` changes options for this use alone: a beam, a test set, a layer to show. One that the weights
// depend on is refused.
Run open(const std::filesystem::path& folder, const std::string& device = "cpu", int threads = 0,
         const std::vector<std::string>& set = {}, Use use = Use::kPredict);

// {"system", "data", "split", "items", "seed", "metrics", "attention", "seconds", "signature"}, and
// "notes" where a figure is undefined or the data have changed; of several seeds or folds the
// means, with "spread" (standard deviations) and "runs" besides. `data` empty: the run's own, and
// InvalidArgument where they have changed so that items it learned from would be judged.
Json evaluate(const std::filesystem::path& folder, const std::string& data,
              const std::string& split, const std::string& device = "cpu", int threads = 0,
              const std::vector<std::string>& set = {});

// One answer for each item of the input; `input.refused` hears of lines that have none.
void predict(Run&, Input input, std::ostream& out);

// The task's pictures.
std::vector<explain::Explanation> explain(Run&, Input* input);
// The loss and the accuracy, or else the metric that chose the weights, by epoch; none of a run
// without two epochs.
std::optional<explain::Explanation> learning(const Run&);

// What `fovea list --json` prints of a system.
Json describe(const System&);

}  // namespace fovea::systems
