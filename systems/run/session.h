// What the verbs do, for any system: train a RUN, open it, evaluate, predict and explain.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "explain/explanation.h"
#include "systems/run/run_config.h"
#include "systems/system.h"
#include "train/progress.h"
#include "train/run/run_folder.h"
#include "train/types.h"

namespace torch::nn {
class Module;
}
namespace fovea::train {
class Ranks;
}

namespace fovea::systems {

struct TrainRequest {
  std::string system = {};
  std::string data = {};               // a path; empty: the system's generator
  std::vector<std::string> set = {};   // "name=value"
  std::optional<int64_t> epochs = {};  // short for set "epochs=…"
  uint64_t seed = 1;                   // initial weights, order, dropout
  uint64_t data_seed = 1;              // generated items and splits
  int64_t seeds = 1;                   // repeated runs: seed, seed + 1, …
  int64_t folds = 0;                   // cross-validation: one run for each fold (and seed)
  std::string only = {};               // only this one of several runs: "seed-2", "fold-3"
  int threads = 0;                     // 0: as many as libtorch takes
  std::string device = "cpu";
  std::filesystem::path out = {};
  bool resume = false;     // continue the run in `out`, or start one if there is none
  bool overwrite = false;  // replace what is in `out`
  double save_every_seconds = 20;
  int64_t parts = 0;  // of each batch; 0: those of the run that is resumed, or as `ranks` says
  std::string sums = "ordered";  // of gradients over ranks: ordered, or any (the order of c10d)
  int ranks = 0;  // processes that train together; 0: no launcher has started this one
};

// Trains and writes a RUN. Returns what `evaluate` returns for the test split; with several seeds or
// folds, their means.
Json train(const TrainRequest&, train::Progress&);

// A RUN opened for use; every file is compared with the manifest.
struct Run {
  const System* system = nullptr;
  Json config;
  std::shared_ptr<RunOptions> run_options;
  std::shared_ptr<Task> task;
  std::shared_ptr<torch::nn::Module> model;
  std::shared_ptr<const train::RunFolder> folder;
};
// For a RUN of several seeds or folds, opens the member with the best validation metric.
// `set` changes options for this use only: a beam, a test set, a layer to show. Options that the
// weights depend on are refused.
Run open(const std::filesystem::path& folder, const std::string& device = "cpu", int threads = 0,
         const std::vector<std::string>& set = {}, Use use = Use::kPredict,
         train::Ranks* ranks = nullptr);

// {"system", "data", "split", "items", "seed", "metrics", "attention", "seconds", "signature"}, and
// "notes" if a figure is undefined or the data have changed. For several seeds or folds: the means,
// with "spread" (standard deviations) and "runs". `data` empty: the run's own data; InvalidArgument
// if they have changed so that items of the training would be evaluated. Where there are ranks, all
// call it, share the work and return the same figures.
Json evaluate(const std::filesystem::path& folder, const std::string& data,
              const std::string& split, const std::string& device = "cpu", int threads = 0,
              const std::vector<std::string>& set = {}, train::Ranks* ranks = nullptr);

// One answer for each item of the input; `input.refused` is called for lines that have none.
void predict(Run&, Input input, std::ostream& out);

// The task's pictures.
std::vector<explain::Explanation> explain(Run&, Input* input);
// Curves over the epochs: the loss, and the accuracy or the monitored metric; nothing if the run has
// fewer than two epochs.
std::optional<explain::Explanation> learning(const Run&);

// What `fovea list --json` prints about a system.
Json describe(const System&);

}  // namespace fovea::systems
