// Attention-based deep multiple-instance learning, Ilse, Tomczak & Welling 2018: a bag has a label,
// its instances have none.
//
//   z = sum_k a_k h_k,  a = softmax(e),  p = σ(c·z + b)
//   e_k = w·tanh(V h_k)  or, gated,  e_k = w·(tanh(V h_k) ⊙ σ(U h_k))
//
// The four baselines pool embeddings h_k, or the instances' own probabilities, by their mean or
// maximum.
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "data/packed.h"
#include "fovea/attend.h"

namespace fovea::systems::mil {

struct Shape {
  int64_t side =
      0;  // of an instance that is a picture, side x side; 0: it is a row of `inputs` numbers
  int64_t inputs = 0;
  int64_t filters = 20, hidden = 500;  // pictures: LeNet's first filters (the second has 5/2 as
                                       // many) and its last layer, M
  int64_t attention = 128;             // L
  double dropout = 0.5;                // rows of numbers, after each of the three layers
  std::string pool =
      "attention";  // gated, embedding_max, embedding_mean, instance_max, instance_mean
  Normaliser normaliser = Softmax{};
  int64_t channels = 1;  // pictures: colours
  bool context = false;  // the query is made from the bag's mean instead of being none
  int64_t places = 0;    // pictures: numbers behind the pixels that say where an instance is
};

class Model : public torch::nn::Module {
 public:
  explicit Model(const Shape& shape);

  torch::Tensor embed(const torch::Tensor& instances);  // [total, M]
  torch::Tensor forward(const data::Packed& bags);      // [bags, 2]: logits of 0 and 1
  bool attends() const { return shape_.pool == "attention" || shape_.pool == "gated"; }

  // The arguments of attend. The query of each bag is zero, as the paper has it: the learned w, V
  // and U are the question. With `context` it is made from the mean of the bag.
  struct Parts {
    torch::Tensor query, key;
    Choices choices;
  };
  Parts parts(const torch::Tensor& embedded, const torch::Tensor& offsets);
  // The weight of each instance in its bag: [total]. For a baseline, the weights that its pooling
  // is equal to.
  torch::Tensor weights_of(const data::Packed& bags);

 private:
  torch::Tensor pooled(const torch::Tensor& embedded, const torch::Tensor& offsets);

  const Shape shape_;
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  torch::nn::Linear fc1_{nullptr}, fc2_{nullptr}, fc3_{nullptr}, v_{nullptr}, u_{nullptr},
      context_{nullptr}, classifier_{nullptr};
  torch::Tensor w_;
};

}  // namespace fovea::systems::mil
