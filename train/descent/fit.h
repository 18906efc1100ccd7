// One training: the interface through which a task reports, and the loop of gradient descent. All
// that is needed to continue after a kill is in one file, state.safetensors, which is replaced as a
// whole. A resumed run ends with the same weights as one that was not interrupted, bit for bit.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "train/sums/rank_sum.h"
#include "train/descent/state.h"
#include "train/progress.h"
#include "train/run/draft.h"
#include "train/task.h"

namespace fovea::train {

class Fit {
 public:
  // `configuration` is a hash of what is trained: a state with another hash is refused.
  Fit(const RunOptions& run_options, std::shared_ptr<torch::nn::Module> model, Draft& draft,
      std::string configuration, Progress& progress);
  // One of several ranks. Only rank 0 has a draft; the others get their state from it and write nothing.
  Fit(const RunOptions& run_options, std::shared_ptr<torch::nn::Module> model, Draft* draft,
      std::string configuration, Progress& progress, Ranks* ranks);

  const RunOptions& run_options() const { return run_options_; }
  torch::nn::Module& model() { return *model_; }
  Progress& progress() { return progress_; }
  Ranks* ranks() { return ranks_; }  // null: this process trains alone

  // A line of metrics.jsonl.
  void record(Json line);
  // What an earlier training of this run saved; nothing at the start. Also brings back
  // metrics.jsonl. InvalidArgument where the state is damaged or of another configuration.
  std::optional<State> resume();
  // Whether the time between two saves (`--checkpoint SECONDS`) has passed since the last one.
  bool save_due() const;
  // state.safetensors, then metrics.jsonl.
  void save(const State&);
  // Throws Interrupted after Ctrl-C. Call it between steps, and after save() if there is something
  // to save.
  void stop_if_interrupted(const std::string& where) const;
  // Writes metrics.jsonl. The state stays, because a later training may add epochs.
  void finish();

  double save_every_seconds = 20;
  Division division = {};  // of each batch

 private:
  std::string state_bytes();
  void write_metrics();

  const RunOptions& run_options_;
  std::shared_ptr<torch::nn::Module> model_;
  Draft* draft_;
  const std::string configuration_;
  Progress& progress_;
  Ranks* ranks_ = nullptr;
  std::vector<std::string> lines_;
  std::chrono::steady_clock::time_point saved_ = std::chrono::steady_clock::now();
};

// A module's parameters and buffers by their dotted names, as PyTorch's state_dict names them.
// Shared, not copied.
TensorMap weights_of(const torch::nn::Module&);
// InvalidArgument names a weight that is missing, unknown, of another shape than the module's or not
// finite. `origin` is the file.
void check_weights(const torch::nn::Module&, const TensorMap&, const std::string& origin);
// Copies values into a module, once they are checked.
void set_weights(torch::nn::Module&, const TensorMap&, const std::string& origin);

// The loop.
void gradient_descent(Fit&, GradientTask&);

}  // namespace fovea::train
