// A step of a differentiable neural computer (Graves et al. 2016): a memory M [N, W] that knows which
// rows are free, and in which order they were written.
//
//   h  = controller([x_t; r_{t-1}^1 ... r_{t-1}^R]),   y = W_y h + W_r [r^1 ... r^R]
//   ψ  = Π_r (1 - f_r w^r_{t-1}),   u = (u + w^w_{t-1} - u ⊙ w^w_{t-1}) ⊙ ψ         usage
//   a[φ_j] = (1 - u[φ_j]) Π_{i<j} u[φ_i],  φ sorts u, the least used first          allocation
//   w^w = g_w (g_a a + (1 - g_a) c(k^w, β^w)),   M ← M ⊙ (1 - w^w e') + w^w v'      write
//   L_ij = (1 - w^w_i - w^w_j) L_ij + w^w_i p_j,  L_ii = 0,  p ← (1 - Σ w^w) p + w^w   links
//   w^r = π_1 L' w^r_{t-1} + π_2 c(k^r, β^r) + π_3 L w^r_{t-1},   r = Σ_i w^r_i M_i    read
//
// c(k, β) = softmax_i(β cos(k, M_i)) and each read go through attend, as the NTM's do.
// From h comes a vector of W R + 3 W + 5 R + 3 numbers: R read keys, their strengths (1 + softplus),
// the write key and strength, erase e (σ), v, R free gates f (σ), g_a, g_w (σ), R modes π (softmax of
// backward, content, forward). Write weights may sum to less than one, and stay so.
#pragma once

#include "fovea/nn/controller.h"

namespace fovea::nn {

// Whether gradients pass through usage to the write weights that it was computed from. The authors'
// program stops them.
enum class UsageGradient { kStopped, kWhole };

// What y is computed from: h and the reads, as in the paper, or the reads alone (W_y = 0). A controller
// that reaches the output only by way of the memory cannot answer from a state of its own.
enum class DncOutput { kControllerAndReads, kReads };

struct DncOptions {
  int64_t input = 0, output = 0;
  int64_t rows = 16, width = 16;  // N and W
  int64_t read_heads = 4;         // R
  int64_t hidden = 64;
  ControllerKind controller = ControllerKind::kLstm;
  UsageGradient usage_gradient = UsageGradient::kStopped;
  DncOutput output_of = DncOutput::kControllerAndReads;
};

struct DncState {
  at::Tensor memory;         // [B, N, W]
  at::Tensor unit_rows;      // [B, N, W]: the memory's rows, each of length 1
  at::Tensor usage;          // [B, N]
  at::Tensor links;          // [B, N, N]: L_ij, how far row i was written after row j
  at::Tensor precedence;     // [B, N]: how far each row was written last
  at::Tensor write_weights;  // [B, N]
  at::Tensor read_weights;   // [B, R, N]
  at::Tensor reads;          // [B, R, W]
  ControllerState controller;
};

struct DncStep {
  at::Tensor output;  // [B, output]
  DncState state;
  at::Tensor modes;  // [B, R, 3]: backward, content, forward
};

class DncCellImpl : public torch::nn::Cloneable<DncCellImpl> {
 public:
  explicit DncCellImpl(const DncOptions& options);
  void reset() override;

  DncState start(int64_t batch) const;  // zeros: a sequence finds an empty memory
  DncStep forward(const at::Tensor& x, const DncState& before);  // x [B, input]

  const DncOptions& options() const { return options_; }

  Controller controller{nullptr};
  torch::nn::Linear interface { nullptr };  // h -> W R + 3 W + 5 R + 3
  torch::nn::Linear output{nullptr};        // [h; r^1 ... r^R], or the reads, -> y

 private:
  DncOptions options_;
};
TORCH_MODULE(DncCell);

}  // namespace fovea::nn
