#include "systems/stacked_attention/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>

#include "fovea/error.h"
#include "nn/forget_gate.h"
#include "nn/products/product.h"

namespace fovea::systems::stacked_attention {
namespace {

using torch::nn::Conv1d;
using torch::nn::Conv1dOptions;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Linear;

constexpr int64_t kFirst = 32, kSecond = 64;  // channels

// The row and the column of each region, from -3 to 3: [regions, 2]. As numbers instead of ones and
// zeros: then "left of" is one step in every column, and is learnt from all of them. They are two
// numbers among 64 features; smaller ones would have hardly any effect.
torch::Tensor places(int64_t grid) {
  const torch::Tensor step = torch::linspace(-3, 3, grid);
  return torch::stack({step.repeat_interleave(grid), step.repeat({grid})}, 1);
}

// First weights that keep the size of numbers from pixels and words to the scores. Question and
// region interact only where tanh is not linear. With small weights it is linear: their parts add,
// the part of the question cancels in the softmax, and every question reads the same regions for
// thousands of steps.
void keep_scale(torch::nn::Module& model) {
  const double of_tanh = torch::nn::init::calculate_gain(torch::kTanh);
  for (const auto& p : model.named_parameters()) {
    if (p.key().starts_with("words")) continue;
    if (p.value().dim() == 4)
      torch::nn::init::kaiming_normal_(p.value());
    else if (p.value().dim() >= 2)
      torch::nn::init::xavier_normal_(p.value(), of_tanh);
  }
}

}  // namespace

Model::Model(const Shape& shape) : shape_(shape), places_(places(shape.grid)) {
  const int64_t cell = shape.side / shape.grid;
  if (shape.side % shape.grid != 0 || cell % 2 != 0)
    throw InvalidArgument(fmt::format("side: {}, expected a multiple of {} (twice the grid)",
                                      shape.side, 2 * shape.grid));
  // Together they see one cell and nothing else.
  conv1_ = register_module("conv1", Conv2d(Conv2dOptions(3, kFirst, cell / 2).stride(cell / 2)));
  conv2_ = register_module("conv2", Conv2d(Conv2dOptions(kFirst, kSecond, 2).stride(2)));
  region_ = register_module("region", Linear(kSecond + 2, shape.width));
  words_ = register_module(
      "words",
      torch::nn::Embedding(torch::nn::EmbeddingOptions(shape.words, shape.width).padding_idx(0)));
  if (shape.question == "lstm") {
    lstm_ = register_module(
        "question",
        torch::nn::LSTM(torch::nn::LSTMOptions(shape.width, shape.width).batch_first(true)));
    nn::open_forget_gate(*lstm_, shape.width);
  } else {
    for (int64_t n = 1; n <= 3; ++n) {
      const int64_t third = shape.width / 3, filters = n < 3 ? third : shape.width - 2 * third;
      filters_.push_back(
          register_module(fmt::format("filter{}", n),
                          Conv1d(Conv1dOptions(shape.width, filters, n).padding(n - 1))));
    }
  }
  for (int64_t hop = 1; hop <= shape.hops; ++hop) {
    of_region_.push_back(register_module(
        fmt::format("region{}", hop),
        Linear(torch::nn::LinearOptions(shape.width, shape.attention).bias(false))));
    of_state_.push_back(
        register_module(fmt::format("state{}", hop), Linear(shape.width, shape.attention)));
    weight_.push_back(register_parameter(
        fmt::format("weight{}", hop),
        torch::randn({shape.attention}) / std::sqrt(static_cast<double>(shape.attention))));
  }
  keep_scale(*this);
  {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& weight : weight_) weight.mul_(shape.narrowness);
  }
  out_ = register_module("out", Linear(shape.width, shape.answers));
}

// Both convolutions have kernels as wide as their strides: they are products of patches that do not
// overlap. The patches of a cell lie beside each other, so that what the first makes of them is a
// row for the second.
torch::Tensor Model::regions(const torch::Tensor& pictures) {
  const int64_t items = pictures.size(0), grid = shape_.grid, patch = shape_.side / grid / 2;
  // [items, 3, row of cells, of patches, of pixels, column of cells, of patches, of pixels]
  const torch::Tensor pixels = pictures.reshape({items, 3, grid, 2, patch, grid, 2, patch})
                                   .permute({0, 2, 5, 3, 6, 1, 4, 7})
                                   .reshape({-1, 3 * patch * patch});
  const torch::Tensor patches =
      torch::relu(nn::projected(pixels, conv1_->weight.flatten(1), conv1_->bias));
  const torch::Tensor cells =
      torch::relu(nn::projected(patches.view({-1, 4 * kFirst}),
                                conv2_->weight.permute({0, 2, 3, 1}).flatten(1), conv2_->bias));
  const torch::Tensor where = places_.to(cells.options()).repeat({items, 1});
  return torch::tanh(nn::projected(torch::cat({cells, where}, 1), region_))
      .view({items, grid * grid, shape_.width});
}

torch::Tensor Model::question(const torch::Tensor& words, const torch::Tensor& lengths) {
  const torch::Tensor x = words_(words);
  // The state at a question's last word does not depend on the padding after it. Computing the
  // padding takes less time than packing.
  if (lstm_) {
    const torch::Tensor last = (lengths - 1).view({-1, 1, 1}).expand({-1, 1, shape_.width});
    return std::get<0>(lstm_(x)).gather(1, last).squeeze(1);
  }
  // No window that is used contains padding: the last one ends at the question's last word.
  std::vector<torch::Tensor> parts;
  for (size_t n = 0; n < filters_.size(); ++n) {
    const torch::Tensor seen = torch::tanh(filters_[n](x.transpose(1, 2)));  // [items, part, …]
    const torch::Tensor step = torch::arange(seen.size(2), lengths.options());
    const torch::Tensor past = step.unsqueeze(0) >= lengths.unsqueeze(1);
    parts.push_back(std::get<0>(seen.masked_fill(past.unsqueeze(1), -1).max(2)));
  }
  return torch::cat(parts, 1);
}

Look Model::look(const torch::Tensor& pictures, const torch::Tensor& words,
                 const torch::Tensor& lengths) {
  const torch::Tensor v = regions(pictures);
  torch::Tensor u = question(words, lengths);
  Look out;
  for (size_t hop = 0; hop < weight_.size(); ++hop) {
    out.query.push_back(of_state_[hop](u).unsqueeze(1).unsqueeze(1));
    out.key.push_back(nn::projected(v, of_region_[hop]).unsqueeze(1));
    out.choices.push_back({.score = Additive{weight_[hop]}});
    u = attend(out.query[hop], out.key[hop], v.unsqueeze(1), out.choices[hop]).flatten(1) + u;
  }
  out.logits = out_(torch::dropout(u, shape_.dropout, is_training()));
  return out;
}

torch::Tensor Model::weights_of(const Look& look, size_t hop) {
  return weights(look.query[hop], look.key[hop], look.choices[hop]).weights.flatten(1);
}

}  // namespace fovea::systems::stacked_attention
