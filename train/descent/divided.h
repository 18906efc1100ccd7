// The gradient of a batch that is divided into parts: on one process one part after the other
// (gradient accumulation), on several ranks each its own parts. Each part draws its random numbers from
// a seed of its own, and gradients are added in an order that does not depend on the number of ranks,
// so the weights do not depend on it either, bit for bit.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/sums/part_sums.h"
#include "train/task.h"

namespace fovea::train {

// Which items of a batch a part is given: a stretch of them; or all, of which it takes those that its
// rank holds, and then there are as many parts as ranks.
enum class ItemsOfPart : uint8_t { kStretch, kHeld };

class DividedGradient {
 public:
  // `ranks` null: this process computes all parts. `room` are bytes of a rank that all see, if they see
  // each other's memory.
  DividedGradient(const torch::nn::Module& model, std::vector<torch::Tensor> parameters,
                  const Division& division, Ranks* ranks, ItemsOfPart given = ItemsOfPart::kStretch,
                  size_t room = 0);
  ~DividedGradient();
  DividedGradient(const DividedGradient&) = delete;
  DividedGradient& operator=(const DividedGradient&) = delete;

  using LossOf = std::function<Loss(const Batch&)>;
  // Leaves the gradient of the batch's mean loss in the parameters. A buffer that the parts change (a
  // running mean of batch normalisation) becomes the mean over the parts. Returns the mean loss,
  // without its graph. If a rank is lost, the buffers are as they were before. `step` is named in
  // messages.
  Loss compute(const Batch& batch, const LossOf& loss, const std::string& step);
  // Buffers become what they were before the last call: a rank was lost before the step was made.
  void take_back() { restore_buffers(); }
  // From now on only these parameters are left a gradient: others are updated by other ranks.
  void leave_gradients_of(std::vector<bool> own) { wanted_ = std::move(own); }
  PartSums& sums() { return *gradients_; }
  // Why gradients travel although all ranks are on one machine; otherwise empty.
  const std::string& why_they_travel() const { return gradients_->why_they_travel(); }

 private:
  // Parameters of one type whose gradients are sent together, as soon as all are there.
  struct Bucket {
    std::vector<size_t> members;
    int64_t numbers = 0;
    size_t missing = 0;       // gradients of this part
    torch::Tensor room = {};  // for them
  };
  // What the ranks tell each other of their parts, in the order of the parts.
  struct Figures {
    double sum = 0, count = 0;        // of the losses
    std::vector<bool> used, changed;  // parameters, buffers
  };
  void make_buckets();
  std::span<const int64_t> items_of(const Batch& batch, int64_t part) const;
  void run_part(const Batch& batch, int64_t part, const LossOf& loss);
  void on_gradient(size_t parameter);
  void move_gradient(size_t parameter);
  void close(size_t bucket);
  void close_complete_ones();
  int64_t most_parts() const;
  Figures exchange(const std::string& step);
  void set_gradients(const Figures& figures, const std::string& step);
  void set_buffers(const Batch& batch, const Figures& figures, const std::string& step);
  void remember_buffers();
  void restore_buffers();

  const Division division_;
  Ranks* const ranks_;
  const ItemsOfPart given_;
  const PartRange own_;
  const std::vector<torch::Tensor> parameters_;
  std::vector<torch::Tensor> buffers_;
  std::vector<Bucket> buckets_;        // in the order in which backward passes fill them
  std::vector<size_t> bucket_of_;      // of each parameter
  std::vector<int64_t> offset_of_;     // in the bucket
  std::vector<bool> wanted_;           // parameters that this rank updates
  std::optional<PartSums> gradients_;  // of each bucket

  // Of the step that runs.
  bool running_ = false;
  int64_t part_ = 0;
  size_t open_ = 0;                    // the first bucket that is not complete
  std::vector<bool> used_, changed_;   // by own parts
  std::vector<bool> moved_;            // gradients of this part that are in their bucket's room
  std::vector<double> sums_, counts_;  // of own parts
  std::vector<torch::Tensor> buffers_before_;
  std::vector<std::vector<torch::Tensor>> buffers_after_;  // each own part that has items
};

}  // namespace fovea::train
