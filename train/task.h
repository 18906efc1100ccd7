// The interface of a system's task: data, model, loss, metrics, pictures. train, evaluate, predict
// and explain are written once for this interface.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "explain/explanation.h"
#include "train/option_values.h"
#include "train/types.h"

namespace fovea {

namespace train {
class Fit;
class Ranks;
struct ParameterGroup;
}  // namespace train

// What a run chose; a task keeps a copy.
struct RunOptions {
  OptionValues options;
  uint64_t seed = 1;  // of initial weights, order and dropout
  torch::Device device = torch::kCPU;
  train::Ranks* ranks = nullptr;  // those that train or evaluate together; null: none
};

// Calls come in this order. Training: read, prepare, build, fit, assets. Applying a run: restore,
// build, then (evaluate only) read.
class Task {
 public:
  virtual ~Task() = default;

  // Reads or generates the items and splits them; learns nothing from them.
  virtual void read(const Source&) = 0;
  // What was read, in one line for the user: "72 lines, 3 classes: billing 24, …"; empty: no
  // message.
  virtual std::string read_in_words() const { return ""; }
  // Learns from the training split what must be known before the model can be built: vocabulary,
  // classes, scaling.
  virtual void prepare() {}
  // What prepare learned, and getting it back.
  virtual Assets assets() const { return {}; }
  virtual void restore(const Assets&) {}
  // The model; its parameters and buffers are the run's weights. It may be called twice: a large
  // model is first built to count its weights. A system without weights returns an empty module.
  virtual std::shared_ptr<torch::nn::Module> build() = 0;
  // Trains. GradientTask runs the loop; others search, solve or measure here, and report through
  // Fit.
  virtual void fit(train::Fit&) = 0;

  // Where there are ranks, all call it, and may share the work (train/ranks/shared_work.h).
  virtual Evaluation evaluate(Split) = 0;
  // A hash of each item of a split (data::item_key). By these a run recognises its training items, in
  // other data and among its own test items. Empty if items have no key.
  virtual std::vector<uint64_t> item_keys(Split) const { return {}; }
  // Writes one answer for each item of the input, as soon as it is known. Where an item is a line,
  // answer_lines of train/answers.h does this. A table is answered or refused as a whole.
  virtual void predict(Input, std::ostream&) = 0;
  // How many lines predict answers in one batch; batches do not depend on each other, so ranks may
  // share them. 0: lines depend on each other, as rows of a table and lines of a story do.
  virtual size_t lines_together() const { return 0; }
  // Pictures of where the model looks: at the input's items, or at items of the test split where
  // `input` is null.
  virtual std::vector<explain::Explanation> explain(Input* input) = 0;

  // What `read` generated, written as files that `read` can read, with the true attention of each
  // item. No files: the system reads none.
  virtual Written write() const { return {}; }
};

// One step's items, and a seed of its own for whatever the task draws (masks, negatives): the same
// after --resume.
struct Batch {
  std::span<const int64_t> items;
  uint64_t seed = 0;
  int64_t epoch = 0;
};

// The mean loss of a batch, and how many things (items, tokens) it is the mean of.
struct Loss {
  torch::Tensor mean;
  int64_t count = 1;
};

// A task that is trained by gradient descent: gradient_descent (train/descent/fit.h) draws batches,
// steps, schedules, clips, validates, stops and saves.
class GradientTask : public Task {
 public:
  virtual int64_t items(Split) const = 0;
  // Lengths of the training items: batches then hold items of similar length. Empty: lengths do not
  // matter.
  virtual std::vector<int64_t> lengths() const { return {}; }
  virtual Loss loss(const Batch&) = 0;
  // After each epoch: metrics of the validation split. One of them is monitored. Empty if there are
  // no validation items.
  virtual Metrics validate() {
    return items(Split::kValidation) ? evaluate(Split::kValidation).metrics : Metrics{};
  }
  // Whether, of two epochs with the same monitored metric, the one with the lower validation loss
  // is better. Otherwise, or without such a loss, the first one is.
  virtual bool ties_go_to_the_lower_loss() const { return true; }
  // Groups of parameters with their own rate and weight decay. By default one group of all that
  // require a gradient.
  virtual std::vector<train::ParameterGroup> parameter_groups(torch::nn::Module&) const;
  // Called before each epoch, with what validate returned after the last one: a task may change its
  // phase (linear start). The state of a phase must follow from the arguments, so that a resumed
  // run makes the same change.
  virtual void begin_epoch(int64_t /*epoch*/, const std::vector<Metrics>& /*history*/) {}

  void fit(train::Fit&) override;
};

// A tensor's numbers, row by row: what an Explanation's maps hold.
std::vector<float> to_floats(const torch::Tensor&);

// Whether less is better: losses and errors yes, accuracies and BLEU no.
bool lower_is_better(const std::string& metric);

}  // namespace fovea
