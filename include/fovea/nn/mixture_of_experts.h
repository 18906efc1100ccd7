// A mixture of experts (Jacobs et al. 1991) of which each token asks k (Shazeer et al. 2017).
//
//   H_i = (x W_g)_i + N(0, 1) softplus((x W_n)_i)      noise while training only
//   g   = softmax over the k largest of H              k = 1: the softmax over all, so that it learns
//   y   = Σ_i g_i E_i(x)
//
// Only chosen experts compute. The tokens are gathered by expert in one pass, each expert answers for
// its own in one product, and the answers are summed by attend, whose structure says which of them a
// token asked for. An expert that no token chose has no gradient at all.
#pragma once

#include <torch/nn.h>

#include <functional>
#include <optional>

#include "fovea/attend.h"

namespace fovea::nn {

struct MixtureOfExpertsOptions {
  int64_t width = 0;       // of a token
  int64_t output = 0;      // of an answer; 0: a token's width
  int64_t hidden = 0;      // of an expert W2 ReLU(W1 x + b1) + b2; 0: W x + b
  int64_t gate_width = 0;  // of what the gate looks at where that is not the token; 0: it is
  int64_t experts = 8, k = 2;
  // W_g and W_n begin at zero, and noise spreads the tokens. Without it W_g begins at random: all
  // tokens would go to the first experts, and stay there.
  bool noise = true;
  // c: an expert takes the first ⌈c k T / experts⌉ of its tokens, in their order. What comes after is
  // not computed: the token itself stands in place of the answer (zero where answers have another
  // width), so that a token without any expert leaves as it came. Absent: there is no limit.
  std::optional<double> capacity = {};
  // Makes an expert of another kind, `width` to `output`. Itself a mixture, there are two levels:
  // y = Σ_a Σ_b g_a g_ab E_ab(x).
  std::function<torch::nn::Sequential()> expert = {};
};

// What a mixture did with T tokens.
struct Mixed {
  at::Tensor output;     // [..., output]
  at::Tensor chosen;     // int64 [T, k]: the experts of each token, the largest score first
  at::Tensor gates;      // [T, k]: their weights
  at::Tensor load;       // int64 [experts]: the tokens that chose each
  int64_t overflow = 0;  // pairs of token and expert beyond the capacity
  // Balance: CV² (variance / mean²) of Σ_x g and of Σ_x P, P the probability that noise drawn again
  // would choose the expert. Without noise the second counts tokens, and has no gradient. Those of
  // mixtures inside the experts are added.
  at::Tensor importance_loss, load_loss;
  // The answers, those of an expert side by side, and which of them each token mixes.
  at::Tensor answers;  // [T k, output]
  Graph answers_of;    // row t lists k rows of `answers`, in the order of `chosen`
};

class MixtureOfExpertsImpl : public torch::nn::Cloneable<MixtureOfExpertsImpl> {
 public:
  explicit MixtureOfExpertsImpl(const MixtureOfExpertsOptions& options);
  void reset() override;

  // x [..., width] -> [..., output]; gate_input [..., gate_width], where the gate does not look at x.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& gate_input = {});
  // The same with all there is to tell.
  Mixed mix(const at::Tensor& x, const at::Tensor& gate_input = {});
  // What the last forward did: its losses belong to the training step.
  const Mixed& last() const { return last_; }

  // The scores without noise: [T, experts].
  at::Tensor scores(const at::Tensor& gate_input);

  const MixtureOfExpertsOptions& options() const { return options_; }

  torch::nn::ModuleList experts{nullptr};
  at::Tensor gate_weight, noise_weight;  // W_g, W_n: [gate_width, experts]

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())})

 private:
  struct Gate;
  torch::nn::Sequential made_expert() const;
  Gate choose(const at::Tensor& gate_input);
  at::Tensor ask(const at::Tensor& tokens, const at::Tensor& pairs,
                 const std::vector<int64_t>& counts);
  void add_inner_losses(const std::vector<int64_t>& counts, Mixed& mixed);

  MixtureOfExpertsOptions options_;
  Mixed last_;
};
TORCH_MODULE(MixtureOfExperts);

}  // namespace fovea::nn
