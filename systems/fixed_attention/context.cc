#include "systems/fixed_attention/context.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "fovea/attend.h"
#include "fovea/error.h"
#include "text/recurrent.h"

namespace fovea::systems {

using torch::nn::LayerNorm;
using torch::nn::LayerNormOptions;
using torch::nn::Linear;

SelfAttentionContext::SelfAttentionContext(int64_t width, int64_t heads, int64_t reach)
    : width_(width), heads_(heads), reach_(reach) {
  if (width % heads != 0)
    throw InvalidArgument(
        fmt::format("width: {}, expected a multiple of the {} heads of context", width, heads));
  in_ = register_module("in_proj", Linear(width, 3 * width));
  out_ = register_module("out_proj", Linear(width, width));
  feed1_ = register_module("linear1", Linear(width, 2 * width));
  feed2_ = register_module("linear2", Linear(2 * width, width));
  norm1_ = register_module("norm1", LayerNorm(LayerNormOptions({width})));
  norm2_ = register_module("norm2", LayerNorm(LayerNormOptions({width})));
  positions_ = register_parameter("positions", at::randn({2 * reach + 1, width / heads}) * 0.3);
}

at::Tensor SelfAttentionContext::forward(const at::Tensor& x, const at::Tensor& bounds) {
  const auto parts = in_(x).view({-1, 3, heads_, width_ / heads_}).unbind(1);
  const Score score = Score(Dot{}).relative(positions_, at::Tensor(), reach_);
  const at::Tensor seen =
      attend(parts[0].contiguous(), parts[1].contiguous(), parts[2].contiguous(),
             {.score = score, .normaliser = Softmax{}, .structure = Ragged{bounds, bounds}});
  const at::Tensor mixed = norm1_(x + out_(seen.reshape({-1, width_})));
  return norm2_(mixed + feed2_(at::relu(feed1_(mixed))));
}

RecurrentContext::RecurrentContext(int64_t width, int64_t state, double dropout)
    : dropout_(dropout) {
  encoder_ = register_module(
      "encoder",
      nn::Recurrent(nn::RecurrentOptions{.cell = nn::Cell::kLstm, .input = width, .width = state}));
}

at::Tensor RecurrentContext::forward(const at::Tensor& x, const at::Tensor& bounds) {
  return text::walk(encoder_, at::dropout(x, dropout_, is_training()), bounds).states;
}

}  // namespace fovea::systems
