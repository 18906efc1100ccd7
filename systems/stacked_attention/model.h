// Stacked attention networks for questions about pictures, Yang, He, Gao, Deng & Smola 2016.
//
//   v_i = tanh(W f_i + b) of region i,  u^0 = v_Q of the question
//   e_i = w·tanh(W_I v_i + W_Q u^k + b),  u^{k+1} = sum_i softmax_i(e) v_i + u^k,  answer from u^K
//
// f_i comes from the pixels of region i alone, by a small convolutional network, and from its row and
// column. So it says nothing of the regions beside it: for these another hop is needed.
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include <string>
#include <vector>

#include "fovea/attend.h"

namespace fovea::systems::stacked_attention {

struct Shape {
  int64_t words = 0, answers = 0;
  int64_t width = 64;      // d
  int64_t attention = 64;  // of w
  int64_t hops = 2;
  int64_t grid = 4, side = 32;    // regions are grid x grid, pictures side x side pixels
  std::string question = "lstm";  // cnn: filters over one, two and three words
  double dropout = 0;             // of u^K
  double narrowness = 1;          // factor on the first weights w: how narrow the first looks are
};

struct Look {
  torch::Tensor logits;              // [items, answers]
  std::vector<torch::Tensor> query;  // of each hop, [items, 1, 1, attention]
  std::vector<torch::Tensor> key;    // [items, 1, regions, attention]
  std::vector<Choices> choices;
};

class Model : public torch::nn::Module {
 public:
  explicit Model(const Shape& shape);

  // Pictures [items, 3, side, side], words [items, longest] with 0 after the end, lengths [items].
  Look look(const torch::Tensor& pictures, const torch::Tensor& words,
            const torch::Tensor& lengths);
  // The weights of a hop, [items, regions].
  static torch::Tensor weights_of(const Look& look, size_t hop);

  torch::Tensor regions(const torch::Tensor& pictures);  // v, [items, regions, width]

 private:
  torch::Tensor question(const torch::Tensor& words, const torch::Tensor& lengths);

  const Shape shape_;
  const torch::Tensor places_;  // [regions, 2]
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  torch::nn::Linear region_{nullptr}, out_{nullptr};
  torch::nn::Embedding words_{nullptr};
  torch::nn::LSTM lstm_{nullptr};
  std::vector<torch::nn::Conv1d> filters_;
  std::vector<torch::nn::Linear> of_region_, of_state_;
  std::vector<torch::Tensor> weight_;
};

}  // namespace fovea::systems::stacked_attention
