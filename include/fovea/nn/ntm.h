// A step of a neural Turing machine (Graves, Wayne & Danihelka 2014): a controller that reads and
// writes rows of a memory M [N, W].
//
//   h  = controller([x_t; r_{t-1}]),   y = W_y h + W_r [r^1 ... r^R]
//   c  = softmax_i(β cos(k, M_i))                      content
//   w̃(i) = Σ_j (g c + (1 - g) w_{t-1})(j) s(i - j)     interpolation, then a circular shift
//   w  ∝ w̃^γ                                           sharpening
//   r  = Σ_i w_i M_i,   M ← M ⊙ (1 - w e') + w a'
//
// Each head has k (tanh), β = softplus, g = σ, s = softmax over shifts, γ = 1 + softplus; a write head
// also e = σ and a. All heads address M as the step before left it, and read it; then it is written.
// Content goes through attend as a dot product of unit rows, the query's times its own β, with values
// that are the identity; a read is attend with the weights given. ε = 1e-6 inside the norms, so that a
// row that is nearly zero has a gradient of ordinary size.
#pragma once

#include "fovea/nn/controller.h"

namespace fovea::nn {

struct NtmOptions {
  int64_t input = 0, output = 0;
  int64_t rows = 128, width = 20;  // N and W
  int64_t read_heads = 1, write_heads = 1;
  int64_t shift = 1;  // a head moves by at most so many rows per step
  int64_t hidden = 100;
  ControllerKind controller = ControllerKind::kLstm;
};

struct NtmState {
  at::Tensor memory;   // [B, N, W]
  at::Tensor weights;  // [B, read heads + write heads, N]: those that read come first
  at::Tensor reads;    // [B, read heads, W]
  ControllerState controller;
};

struct NtmStep {
  at::Tensor output;  // [B, output]
  NtmState state;
};

class NtmCellImpl : public torch::nn::Cloneable<NtmCellImpl> {
 public:
  explicit NtmCellImpl(const NtmOptions& options);
  void reset() override;

  // The start of a sequence: all rows are equal, and every head is at row 0. If the heads had no
  // position, nothing would distinguish the rows.
  NtmState start(int64_t batch) const;
  NtmStep forward(const at::Tensor& x, const NtmState& before);  // x [B, input]

  const NtmOptions& options() const { return options_; }

  Controller controller{nullptr};
  torch::nn::Linear heads{nullptr};   // h -> what the heads are made of
  torch::nn::Linear output{nullptr};  // [h; r^1 ... r^R] -> y

 private:
  at::Tensor addresses(const at::Tensor& made, const NtmState& before) const;

  NtmOptions options_;
};
TORCH_MODULE(NtmCell);

}  // namespace fovea::nn
