#include "systems/sparse_patterns/model.h"

#include <cmath>

#include "fovea/attend.h"
#include "train/interrupt.h"
#include "train/usage_error.h"

namespace fovea::systems::sparse_patterns {
namespace {

constexpr int64_t kStart = 2;           // read before the first pixel
constexpr double kFirstSpread = 0.125;  // times 1/√inputs: the paper's

torch::nn::Linear drawn_linear(int64_t inputs, int64_t outputs, double factor = 1) {
  torch::nn::Linear out(inputs, outputs);
  const torch::NoGradGuard no_grad;
  out->weight.normal_(0, kFirstSpread * factor / std::sqrt(static_cast<double>(inputs)));
  out->bias.zero_();
  return out;
}

torch::nn::Embedding drawn_embedding(int64_t rows, int64_t width) {
  torch::nn::Embedding out(rows, width);
  const torch::NoGradGuard no_grad;
  out->weight.normal_(0, kFirstSpread);
  return out;
}

torch::nn::LayerNorm norm_of(int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

}  // namespace

Layer::Layer(const Config& c, int64_t number) : config_(c), number_(number) {
  // What a layer adds to the residual stream: 1/√(2N) of the others.
  const double added = 1 / std::sqrt(2.0 * static_cast<double>(c.layers));
  in_proj_ = register_module("in_proj", drawn_linear(c.width, 3 * c.width));
  out_proj_ = register_module("out_proj", drawn_linear(c.width, c.width, added));
  linear1_ = register_module("linear1", drawn_linear(c.width, c.hidden));
  linear2_ = register_module("linear2", drawn_linear(c.hidden, c.width, added));
  norm1_ = register_module("norm1", norm_of(c.width));
  norm2_ = register_module("norm2", norm_of(c.width));
}

Layer::Heads Layer::heads(const torch::Tensor& x) {
  const auto all = in_proj_(norm1_(x)).unflatten(-1, {3, config_.heads, -1}).unbind(2);
  return {all[0].transpose(1, 2), all[1].transpose(1, 2), all[2].transpose(1, 2)};
}

torch::Tensor Layer::fed_forward(const torch::Tensor& x) {
  return x + linear2_(torch::gelu(linear1_(norm2_(x))));
}

torch::Tensor Layer::forward(const torch::Tensor& x) {
  const Heads all = heads(x);
  std::vector<torch::Tensor> out;
  // Heads with the same part are one call.
  for (int64_t h = 0; h < config_.heads;) {
    int64_t end = h + 1;
    while (end < config_.heads && part(end) == part(h)) ++end;
    const auto some = [&](const torch::Tensor& t) { return t.narrow(1, h, end - h); };
    out.push_back(
        attend_pattern(some(all.query), some(all.key), some(all.value), config_.pattern, part(h)));
    h = end;
  }
  const torch::Tensor mixed = out.size() == 1 ? out[0] : torch::cat(out, 1);
  return fed_forward(x + out_proj_(mixed.transpose(1, 2).flatten(2)));
}

torch::Tensor Layer::step(const torch::Tensor& x, int64_t i, torch::Tensor& cache) {
  const torch::Tensor all = in_proj_(norm1_(x));
  cache.select(1, i).copy_(all.narrow(1, config_.width, 2 * config_.width));
  const torch::Tensor query = all.narrow(1, 0, config_.width).unflatten(-1, {config_.heads, 1, -1});
  const auto kept = cache.unflatten(-1, {2, config_.heads, -1}).unbind(2);  // [B, n, H, E]
  std::vector<torch::Tensor> out;
  for (int64_t h = 0; h < config_.heads; ++h) {
    const torch::Tensor seen =
        torch::tensor(keys_of(config_.pattern, part(h), i), torch::kLong).to(x.device());
    const auto rows = [&](const torch::Tensor& t) {
      return t.select(2, h).index_select(1, seen).unsqueeze(1);
    };
    out.push_back(attend(query.narrow(1, h, 1), rows(kept[0]), rows(kept[1])).flatten(1));
  }
  return fed_forward(x + out_proj_(torch::cat(out, 1)));
}

std::vector<torch::Tensor> Layer::weights(const torch::Tensor& x, int64_t i) {
  const torch::NoGradGuard no_grad;
  const Heads all = heads(x);
  std::vector<torch::Tensor> out;
  for (int64_t h = 0; h < config_.heads; ++h) {
    const torch::Tensor seen =
        torch::tensor(keys_of(config_.pattern, part(h), i), torch::kLong).to(x.device());
    out.push_back(fovea::weights(all.query.narrow(1, h, 1).narrow(2, i, 1),
                                 all.key.narrow(1, h, 1).index_select(2, seen))
                      .weights.flatten());
  }
  return out;
}

Model::Model(const Config& c) : config_(c) {
  if (c.width % c.heads != 0)
    throw UsageError("heads: " + std::to_string(c.heads) + ", expected a divisor of the width " +
                     std::to_string(c.width));
  pixel_ = register_module("pixel", drawn_embedding(3, c.width));
  row_ = register_module("row", drawn_embedding(c.side, c.width));
  column_ = register_module("column", drawn_embedding(c.side, c.width));
  for (int64_t i = 0; i < c.layers; ++i)
    layers_.push_back(register_module("layer" + std::to_string(i), std::make_shared<Layer>(c, i)));
  norm_ = register_module("norm", norm_of(c.width));
  output_ = register_module("output", torch::nn::Linear(c.width, 1));
  const torch::NoGradGuard no_grad;
  output_->weight.zero_();
  output_->bias.zero_();
}

torch::Tensor Model::inputs_of(const torch::Tensor& pixels) const {
  const torch::Tensor start = torch::full({pixels.size(0), 1}, kStart, pixels.options());
  return torch::cat({start, pixels.narrow(1, 0, pixels.size(1) - 1)}, 1);
}

torch::Tensor Model::embedded(const torch::Tensor& before, int64_t first) {
  const torch::Tensor place = first + torch::arange(before.size(1), before.options());
  return pixel_(before) + row_(place.floor_divide(config_.side)) +
         column_(place.remainder(config_.side));
}

torch::Tensor Model::forward(const torch::Tensor& pixels) {
  torch::Tensor x = embedded(inputs_of(pixels), 0);
  for (const auto& layer : layers_) x = layer->forward(x);
  return output_(norm_(x)).squeeze(-1);
}

std::vector<torch::Tensor> Model::states(const torch::Tensor& pixels) {
  torch::Tensor x = embedded(inputs_of(pixels), 0);
  std::vector<torch::Tensor> out;
  for (const auto& layer : layers_) {
    out.push_back(x);
    x = layer->forward(x);
  }
  return out;
}

torch::Tensor Model::completed(const torch::Tensor& pixels, int64_t given,
                               const torch::Tensor& uniform) {
  const torch::NoGradGuard no_grad;
  torch::Tensor out = pixels.clone();
  std::vector<torch::Tensor> caches;
  for (size_t i = 0; i < layers_.size(); ++i)
    caches.push_back(torch::zeros({pixels.size(0), config_.pixels(), 2 * config_.width},
                                  output_->weight.options()));
  for (int64_t p = 0; p < config_.pixels(); ++p) {
    train::stop_if_interrupted("while drawing pixels");
    const torch::Tensor before = p == 0 ? torch::full({pixels.size(0), 1}, kStart, pixels.options())
                                        : out.narrow(1, p - 1, 1);
    torch::Tensor x = embedded(before, p).squeeze(1);
    for (size_t i = 0; i < layers_.size(); ++i) x = layers_[i]->step(x, p, caches[i]);
    if (p < given) continue;
    const torch::Tensor share = output_(norm_(x)).squeeze(-1).sigmoid();
    out.select(1, p).copy_(uniform.select(1, p) < share);
  }
  return out;
}

}  // namespace fovea::systems::sparse_patterns
