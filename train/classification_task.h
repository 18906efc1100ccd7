// A task that gives each item a class: loss, accuracy, F1, AUC and hit rate are the same for all of
// them.
#pragma once

#include <span>
#include <vector>

#include "data/split.h"
#include "train/task.h"

namespace fovea {

class ClassificationTask : public GradientTask {
 public:
  explicit ClassificationTask(const RunOptions& run_options) : run_options_(run_options) {}

  int64_t items(Split split) const override {
    return static_cast<int64_t>(splits_.of(split).size());
  }
  std::vector<int64_t> lengths() const override;
  std::vector<uint64_t> item_keys(Split split) const override { return splits_.keys_of(split); }
  // Cross entropy of logits().
  Loss loss(const Batch&) override;
  // loss, accuracy, f1 (macro), error; auc if there are two classes and both occur; hit_rate if hits()
  // has values, zeros if it counted them. Notes: no items, uneven classes, classes that f1 leaves out.
  Evaluation evaluate(Split) override;

 protected:
  // [items, classes] for the items given, which are numbers of items, not positions in a split.
  virtual torch::Tensor logits(std::span<const int64_t> items) = 0;
  // For each item: 1 if its largest weight is on a true item, 0 if not, -1 if the truth is unknown.
  // Empty: the truth is unknown for all.
  virtual std::vector<int> hits(std::span<const int64_t> /*items*/) { return {}; }

  // What logits() and hits() count of their own while an evaluation runs. Ranks add up theirs.
  virtual std::vector<double> counted() const { return {}; }
  virtual void set_counted(const std::vector<double>& /*counts*/) {}

  // Called by hits() with the weights it looked at: their share of exact zeros is reported.
  void count_zeros(const torch::Tensor& weights);
  // The same where the weights were counted before.
  void count_zeros(double weights, double zeros);

  // The items' classes as a tensor on the device.
  torch::Tensor classes(std::span<const int64_t> items) const;

  // What a derived task fills in read(): one entry of labels_ (and of lengths_, where lengths
  // matter) for each item.
  const RunOptions run_options_;
  data::Splits splits_;
  std::vector<int64_t> labels_, lengths_;

 private:
  std::vector<double> judged_batch(const std::vector<int64_t>& items);

  double weights_seen_ = 0, zeros_seen_ = 0;  // of the evaluation under way
};

// Item numbers at some positions of a split.
std::vector<int64_t> at_positions(const std::vector<int64_t>& split,
                                  std::span<const int64_t> positions);

}  // namespace fovea
