// nn::Memory with the ways to train it: linear start, and the supervision of the first memory
// networks, which were told the supporting lines (Weston, Chopra & Bordes 2015).
#pragma once

#include <torch/nn/module.h>

#include <vector>

#include "fovea/nn/memory.h"

namespace fovea::systems::memory_network {

enum class Training {
  kEndToEnd,    // from answers alone
  kSupervised,  // each hop is trained on a supporting line; in use it reads the heaviest line only
};
enum class Reading { kLinear, kNormalised };  // kLinear: scores are the weights

class Model : public torch::nn::Module {
 public:
  Model(const nn::MemoryOptions& options, Training training);

  nn::Recall recall(const nn::Stories& stories);
  // [stories, words without the special ones]
  torch::Tensor logits(const nn::Recall& recall);
  // The loss of the supporting lines: -log of the weight of the k-th line in hop k, and of the last
  // line in further hops; the mean over questions and hops.
  torch::Tensor support_loss(const nn::Recall& recall, const nn::Remembered& batch) const;
  // For each hop the heaviest line of each story, [hops, stories]; -1: the story has none.
  torch::Tensor heaviest(const nn::Recall& recall) const;

  bool supervised() const { return training_ == Training::kSupervised; }
  // Stored with the weights: weights from a linear epoch are always used linearly.
  void set_reading(Reading reading);
  bool reads_linearly() const;

 private:
  const Training training_;
  nn::Memory memory_{nullptr};
  torch::Tensor linear_;
};

}  // namespace fovea::systems::memory_network
