// A mixture of experts (Jacobs et al. 1991); each token goes to k experts (Shazeer et al. 2017).
//
//   H_i = (x W_g)_i + N(0, 1) softplus((x W_n)_i)      noise while training only
//   g   = softmax over the k largest of H              k = 1: the softmax over all, so that it learns
//   y   = Σ_i g_i E_i(x)
//
// Only chosen experts compute. The tokens are gathered by expert in one pass, and each expert
// computes all its tokens at once. attend then sums the outputs; its structure is the graph of
// which outputs belong to which token. An expert that no token chose has no gradient.
#pragma once

#include <torch/nn.h>

#include <functional>
#include <optional>

#include "fovea/attend.h"

namespace fovea::nn {

struct MixtureOfExpertsOptions {
  int64_t width = 0;       // width of a token
  int64_t output = 0;      // width of an expert's output; 0: the token's width
  int64_t hidden = 0;      // hidden width of an expert W2 ReLU(W1 x + b1) + b2; 0: W x + b
  int64_t gate_width = 0;  // width of the gate's input, if it is not the token; 0: it is the token
  int64_t experts = 8, k = 2;
  // With noise, W_g and W_n start at zero and the noise spreads the tokens. Without noise W_g
  // starts at random: with zeros all tokens would go to the first experts and stay there.
  bool noise = true;
  // c: an expert takes the first ⌈c k T / experts⌉ of its tokens, in their order. The others are
  // not computed: the token itself replaces the expert's output (zero if outputs have another
  // width), so that a token without any expert is left unchanged. Absent: there is no limit.
  std::optional<double> capacity = {};
  // Makes an expert of another kind, `width` to `output`. If that is itself a mixture, there are
  // two levels: y = Σ_a Σ_b g_a g_ab E_ab(x).
  std::function<torch::nn::Sequential()> expert = {};
};

// What a mixture did with T tokens.
struct Mixed {
  at::Tensor output;     // [..., output]
  at::Tensor chosen;     // int64 [T, k]: the experts of each token, the largest score first
  at::Tensor gates;      // [T, k]: their weights
  at::Tensor load;       // int64 [experts]: number of tokens that chose each expert
  int64_t overflow = 0;  // pairs of token and expert beyond the capacity
  // Balance losses: CV² (variance / mean²) of Σ_x g, and of Σ_x P, where P is the probability that
  // the expert would be chosen if its noise were drawn again. Without noise the second counts
  // tokens and has no gradient. The losses of mixtures inside the experts are added.
  at::Tensor importance_loss, load_loss;
  // The outputs of the experts, those of one expert together, and which of them belong to a token.
  at::Tensor answers;  // [T k, output]
  Graph answers_of;    // row t lists k rows of `answers`, in the order of `chosen`
};

class MixtureOfExpertsImpl : public torch::nn::Cloneable<MixtureOfExpertsImpl> {
 public:
  explicit MixtureOfExpertsImpl(const MixtureOfExpertsOptions& options);
  void reset() override;

  // x [..., width] -> [..., output]; gate_input [..., gate_width]: the gate's input, if not x.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& gate_input = {});
  // The same, with everything that a mixture computes.
  Mixed mix(const at::Tensor& x, const at::Tensor& gate_input = {});
  // The result of the last forward: add its losses to the training loss.
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
  at::Tensor compute(const at::Tensor& tokens, const at::Tensor& pairs,
                     const std::vector<int64_t>& counts);
  void add_inner_losses(const std::vector<int64_t>& counts, Mixed& mixed);

  MixtureOfExpertsOptions options_;
  Mixed last_;
};
TORCH_MODULE(MixtureOfExperts);

}  // namespace fovea::nn
