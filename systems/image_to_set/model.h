// From keys (regions of a picture, words of a title) to a set of labels, by any of the seven predictors.
//
//   feed-forward:   o_l = attend(slot_l, keys),  p_l = σ(w_l · relu(W o_l) + b_l)
//   in steps:       s_t = Transformer or LSTM of the labels so far, each attending to the keys;
//                   p_t = softmax over the labels not yet named, and the end
//
// A set has no order: the Transformer has no positions.
#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>

#include <string>
#include <vector>

#include "fovea/nn/transformer.h"
#include "systems/image_to_set/decoding.h"
#include "systems/image_to_set/predictors.h"

namespace fovea::systems::image_to_set {

// What is looked at.
struct Memory {
  torch::Tensor keys;          // [items, keys, width]
  torch::Tensor lengths = {};  // int32 [items]; undefined: all keys of every item
};

struct Shape {
  std::string predictor = "transformer";
  std::string cardinality = "none";  // categorical, dirichlet: a size is predicted too
  std::string pool = "labels";       // feed-forward: a query for each label; mean: as in the paper
  int64_t labels = 0, largest = 0;   // labels there are, and in the largest set
  bool may_be_empty = true;
  int64_t width = 64, heads = 4, layers = 2;
  double dropout = 0;
  double end_weight = 1, size_weight = 1;  // of the losses beside that of the labels
  std::vector<float> size_shares = {};  // of the sizes 0 … largest in the training; none: unknown
};

// A set, its labels in the order in which they were chosen, and how likely each was.
struct Named {
  LabelSet labels;
  std::vector<float> probabilities;
};

class SetPredictor : public torch::nn::Module {
 public:
  explicit SetPredictor(const Shape& shape);

  const Predictor& predictor() const { return predictor_; }
  Rule rule() const;  // feed-forward predictors
  Bounds bounds() const { return {shape_.largest, shape_.may_be_empty}; }

  // The mean of the items. Sets are given in the order in which they are to be told.
  torch::Tensor loss(const Memory& memory, const std::vector<LabelSet>& sets);
  std::vector<Named> name(const Memory& memory);

  // Feed-forward: what the choice rests on, and the cut that `name` makes.
  std::vector<Scored> scored(const Memory& memory);
  Cut cut() const;
  void set_cut(const Cut& cut);

  // The weights of one item's labels over the keys: of each layer [heads, labels, keys]. No labels: none.
  std::vector<torch::Tensor> weights_of(const Memory& memory, const LabelSet& labels);

  // [items, steps, labels + 1]: what follows inputs [items, steps], of which the first is `start()`.
  // Labels named before have -inf; the end, which is last, never has.
  torch::Tensor next_logits(const torch::Tensor& inputs, const Memory& memory);
  int64_t start() const { return shape_.labels + 1; }

 private:
  torch::Tensor label_logits(const Memory& memory);  // feed-forward, [items, labels]
  torch::Tensor log_sizes(const Memory& memory);     // [items, largest + 1]
  torch::Tensor mean_of(const Memory& memory) const;
  torch::Tensor recurrent(const torch::Tensor& x, const Memory& memory);
  torch::Tensor states(const torch::Tensor& inputs, const Memory& memory);
  torch::Tensor last_logits(const torch::Tensor& inputs, const Memory& memory);  // of the last step
  torch::Tensor step_loss(const Memory& memory, const std::vector<LabelSet>& sets);
  torch::Tensor own_steps(const Memory& memory, int64_t steps);
  std::vector<Named> told(const Memory& memory);

  const Shape shape_;
  const Predictor predictor_;
  torch::Tensor slots_, label_weight_, label_bias_, cut_, size_shares_;
  torch::nn::Linear hidden_{nullptr}, sizes_hidden_{nullptr}, sizes_{nullptr},
      first_state_{nullptr}, join_{nullptr}, out_{nullptr};
  nn::MultiHead cross_{nullptr};
  torch::nn::Embedding embedding_{nullptr};
  torch::nn::LSTM lstm_{nullptr};
  nn::Decoder decoder_{nullptr};
};

}  // namespace fovea::systems::image_to_set
