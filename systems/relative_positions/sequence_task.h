// What the copies and the music share: tokens read from the left, a target at each, and where it is
// known the place that decides.
#pragma once

#include <memory>
#include <vector>

#include "systems/relative_positions/model.h"
#include "train/task.h"

namespace fovea::systems::relative_positions {

struct Sequence {
  std::vector<int64_t> inputs = {};
  std::vector<int64_t> targets = {};   // kNoTarget: not judged
  std::vector<int64_t> deciding = {};  // the position each target follows from; -1: unknown
};
inline constexpr int64_t kNoTarget = -100;

class SequenceTask : public GradientTask {
 public:
  explicit SequenceTask(const RunOptions& run_options)
      : run_options_(run_options), options_(run_options_.options) {}

  std::shared_ptr<torch::nn::Module> build() override;
  int64_t items(Split split) const override { return static_cast<int64_t>(of(split).size()); }
  std::vector<int64_t> lengths() const override;
  Loss loss(const Batch&) override;
  Evaluation evaluate(Split) override;

 protected:
  virtual int64_t vocabulary() const = 0;
  virtual int64_t clip() const = 0;

  std::vector<Sequence>& of(Split split) { return sequences_[static_cast<size_t>(split)]; }
  const std::vector<Sequence>& of(Split split) const {
    return sequences_[static_cast<size_t>(split)];
  }
  torch::Tensor tensor_of(const std::vector<int64_t>& tokens) const;  // [1, L]

  const RunOptions run_options_;
  const OptionValues& options_;
  std::shared_ptr<SequenceModel> model_;

 private:
  struct Padded {
    torch::Tensor inputs, targets;  // [B, L]
    int64_t count = 0;              // targets that are judged
  };
  Padded padded(const std::vector<Sequence>& from, std::span<const int64_t> items) const;
  // For each layer and head: how often its largest weight is at the place that decides; and of how
  // many.
  std::pair<torch::Tensor, int64_t> hits(const std::vector<Sequence>& from);

  std::vector<Sequence> sequences_[3];  // by split
};

}  // namespace fovea::systems::relative_positions
