// Recurrent encoders over sequences of different length, on libtorch's GRU and LSTM with packed
// sequences: padding is never read, and the backward direction starts at each sequence's true end.
//
// The GRU is torch.nn.GRU's, so that its checkpoints move both ways:
//   h = (1 - z) * n + z * h_prev,  n = tanh(W x + b + r * (U h_prev + c)).
// Cho et al. 2014 reset before the product, tanh(W x + U (r * h_prev) + b), and their z is 1 - z
// here. The second difference is only a name; the first is another cell, with as many weights.
#pragma once

#include <torch/nn.h>

namespace fovea::nn {

enum class Cell { kGru, kLstm };

struct RecurrentOptions {
  Cell cell = Cell::kGru;
  int64_t input = 0, width = 0;  // width of each direction
  int64_t layers = 1;
  bool bidirectional = true;
  double dropout = 0;  // between layers
};

struct Encoded {
  at::Tensor states;    // [B, S, directions * width]; zero at padding
  at::Tensor forward;   // [B, width]: the last layer's state at each sequence's last item
  at::Tensor backward;  // [B, width]: at its first item; undefined for one direction
  at::Tensor cells;     // [layers * directions, B, width] of an LSTM
  at::Tensor hidden;    // [layers * directions, B, width]
};

// Parameters are named as those of torch.nn.GRU or torch.nn.LSTM, under `rnn`. An LSTM's forget
// bias starts at 1.
class RecurrentImpl : public torch::nn::Cloneable<RecurrentImpl> {
 public:
  explicit RecurrentImpl(const RecurrentOptions& options);
  void reset() override;
  // x [B, S, input], lengths int [B] of at least 1.
  Encoded forward(const at::Tensor& x, const at::Tensor& lengths);
  int64_t state_width() const { return options_.width * (options_.bidirectional ? 2 : 1); }

 private:
  RecurrentOptions options_;
  torch::nn::GRU gru_{nullptr};
  torch::nn::LSTM lstm_{nullptr};
};
TORCH_MODULE(Recurrent);

}  // namespace fovea::nn
