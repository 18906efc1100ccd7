#include "systems/fixed_attention/model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/packed.h"

namespace fovea::systems {

using torch::nn::Linear;

FixedAttentionModel::FixedAttentionModel(const Config& config) : config_(config) {
  embedding = register_module("embedding", text::Embedding(config.embedding));
  if (config.context) register_module("context", config.context);
  const int64_t d = config.context ? config.context->output_width() : config.embedding.width;
  const int64_t e = config.score == FixedScore::kMlp ? config.hidden : d;
  if (config.score == FixedScore::kMlp) key_ = register_module("key", Linear(d, config.hidden));
  // Drawn independently: equal θ would stay equal, and give R copies of one map.
  theta = register_parameter("theta",
                             at::randn({config.queries, e}) / std::sqrt(static_cast<double>(e)));
  answer_ = register_module("output", Linear(config.queries * d, config.classes));
}

at::Tensor FixedAttentionModel::keys(const at::Tensor& x) {
  if (!key_) return x.unsqueeze(1);
  const at::Tensor inner = key_(x);
  return (config_.activation == MlpActivation::kSigmoid ? at::sigmoid(inner) : at::tanh(inner))
      .unsqueeze(1);
}

Choices FixedAttentionModel::choices(const at::Tensor& bounds) const {
  return {.score = Dot{1.0},
          .normaliser = config_.normaliser,
          .structure = Ragged{data::one_each(bounds.size(0) - 1, bounds.device()), bounds}};
}

at::Tensor FixedAttentionModel::scores(const at::Tensor& x) {
  return theta.matmul(keys(x).squeeze(1).t());
}

// ‖A Aᵀ − I‖² (Lin et al. 2017), the mean over the bags: how alike the maps of the θ are, and how
// spread each of them. The values are A itself, held fixed; so attention gives A Aᵀ [bags, R, R], and
// no more than A is stored. A Aᵀ is symmetric in its two factors, so the gradient through the one
// that is not held is half of the whole.
at::Tensor FixedAttentionModel::alike(const at::Tensor& query, const at::Tensor& key,
                                      const at::Tensor& bounds) const {
  const Choices how = choices(bounds);
  at::Tensor held;
  {
    const torch::NoGradGuard no_grad;
    held = text::packed_weights(query, key, how, bounds).t().unsqueeze(1).contiguous();
  }
  const at::Tensor product = attend(query, key, held, how);
  const at::Tensor distance = (product - at::eye(config_.queries, product.options()))
                                  .square()
                                  .sum()
                                  .div(static_cast<double>(std::max<int64_t>(1, query.size(0))));
  return 2 * distance - distance.detach();
}

text::Answer FixedAttentionModel::answer(const text::Batch& batch, text::Want want) {
  const at::Tensor bounds = batch.bounds();
  at::Tensor x = embedding(batch.words);  // [total, width]
  if (config_.context) x = config_.context->forward(x, bounds);
  const int64_t r = config_.queries, items = batch.items();
  const at::Tensor key = keys(x);
  // A head for each θ_r; all of them share the words' one head of keys and values.
  const at::Tensor query = theta.unsqueeze(0).expand({items, r, theta.size(1)});
  const Choices how = choices(bounds);
  const at::Tensor v =
      attend(query, key, x.unsqueeze(1), how).reshape({items, r * x.size(1)});  // [v_1; …; v_R]
  text::Answer out;
  out.logits = answer_(at::dropout(v, config_.dropout, is_training()));
  if (is_training() && config_.penalty > 0)
    out.penalty = config_.penalty * alike(query, key, bounds);
  if (want == text::Want::kLook) {
    out.look = {.words = text::packed_weights(query, key, how, bounds),
                .sentences = {},
                .heads = {},
                .score = !key_                                           ? "dot θᵀx"
                         : config_.activation == MlpActivation::kSigmoid ? "MLP θᵀσ(W x + b)"
                                                                         : "MLP θᵀtanh(W x + b)",
                .normaliser = config_.normaliser_name,
                .structure = "sentence",
                .scale = "1"};
    for (int64_t i = 1; i <= r; ++i) out.look.heads.push_back(fmt::format("θ{}", i));
  }
  return out;
}

}  // namespace fovea::systems
