#include "systems/gat/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "data/random.h"

namespace fovea::systems::gat {
namespace {

namespace F = torch::nn::functional;

torch::Tensor glorot(at::IntArrayRef shape, int64_t fan_in, int64_t fan_out) {
  const double bound = std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
  return torch::empty(shape).uniform_(-bound, bound);
}

torch::Tensor int_tensor(const std::vector<int32_t>& values) { return torch::tensor(at::ArrayRef<int32_t>(values), torch::kInt32); }

Graph moved(const Graph& graph, torch::Device device) {
  return graph.columns.defined() ? Graph{graph.row_offsets.to(device), graph.columns.to(device)} : graph;
}

}  // namespace

torch::Tensor survivors(int64_t count, double dropout) {
  // Four draws of sixteen bits from one hashed counter; libtorch draws one number at a time, which would cost more than the layer.
  const auto threshold = static_cast<uint16_t>(std::lround(dropout * 65536));
  const auto seed = static_cast<uint64_t>(torch::randint(std::numeric_limits<int64_t>::max(), {1}, torch::kInt64).item<int64_t>());
  torch::Tensor out = torch::empty({(count + 3) / 4 * 4}, torch::kBool);
  bool* to = out.data_ptr<bool>();
  for (int64_t i = 0; i < out.numel(); i += 4) {
    const uint64_t bits = data::Random(seed + static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u).next();
    for (int64_t k = 0; k < 4; ++k) to[i + k] = static_cast<uint16_t>(bits >> (16 * k)) >= threshold;
  }
  return out.narrow(0, 0, count);
}

torch::Tensor drop(const torch::Tensor& values, double dropout) {
  if (dropout == 0) return values;
  return values * survivors(values.numel(), dropout).view(values.sizes()).to(values.options()).mul_(1 / (1 - dropout));
}

GraphInput GraphInput::to(torch::Device device) const {
  return {moved(sees, device), moved(words, device), values.defined() ? values.to(device) : values, nodes, features};
}

GraphInput input_of(const data::CitationGraph& graph, const data::Csr& sees) {
  GraphInput out;
  out.nodes = graph.nodes;
  out.features = graph.features;
  out.sees = {int_tensor(sees.row_offsets), int_tensor(sees.columns)};
  if (graph.words.empty()) {
    const torch::Tensor rows = torch::tensor(at::ArrayRef<float>(graph.values)).view({graph.nodes, graph.features});
    const torch::Tensor sums = rows.abs().sum(1, true);
    out.values = rows / torch::where(sums > 0, sums, torch::ones_like(sums));
    return out;
  }
  std::vector<int32_t> offsets{0}, columns;
  for (const auto& words : graph.words) {
    columns.insert(columns.end(), words.begin(), words.end());
    offsets.push_back(static_cast<int32_t>(columns.size()));
  }
  out.words = {int_tensor(offsets), int_tensor(columns)};
  return out;
}

torch::Tensor mean_of_words(const torch::Tensor& weight, const GraphInput& input, double dropout) {
  const auto blank = [&](int64_t n) { return torch::zeros({n, 1, 1}, weight.options()); };
  Graph kept = input.words;
  torch::Tensor factor;
  if (dropout > 0) {
    // A dropped word need not be read: the mean of those left, times their number, over that of all and the chance to be left.
    const torch::Tensor stays = survivors(input.words.columns.numel(), dropout).to(weight.device());
    const torch::Tensor ends = torch::nn::functional::pad(stays.cumsum(0, torch::kInt32), torch::nn::functional::PadFuncOptions({1, 0}));
    kept = {ends.index_select(0, input.words.row_offsets), input.words.columns.masked_select(stays)};
    const torch::Tensor all = input.words.row_offsets.diff(), left = kept.row_offsets.diff();
    factor = (left / (all.clamp_min(1) * (1 - dropout))).to(weight.scalar_type()).unsqueeze(1);
  }
  // Equal scores: the softmax is the mean, on the path the engine keeps for graphs.
  const torch::Tensor mean =
      attend(blank(input.nodes), blank(input.features), weight.unsqueeze(1), {.score = RankOne{}, .structure = kept}).squeeze(1);
  return factor.defined() ? mean * factor : mean;
}

Layer::Layer(int64_t inputs, int64_t heads, int64_t width, const Shape& shape)
    : heads_(heads), width_(width), dropout_(shape.dropout), attention_dropout_(shape.attention_dropout),
      negative_slope_(shape.negative_slope), dynamic_(shape.dynamic), normaliser_(shape.normaliser) {
  weight_ = register_parameter("weight", glorot({inputs, heads * width}, inputs, heads * width));
  if (dynamic_) {
    query_weight_ = register_parameter("query_weight", glorot({inputs, heads * width}, inputs, heads * width));
    attention_ = register_parameter("attention", glorot({heads, width}, width, 1));
  } else {
    attention_ = register_parameter("attention", glorot({heads, width, 2}, width, 1));  // a1, a2
  }
  bias_ = register_parameter("bias", torch::zeros({heads, width}));
}

torch::Tensor Layer::project(const torch::Tensor& weight, const GraphInput& input, const torch::Tensor& nodes) const {
  const double chance = is_training() ? dropout_ : 0;
  const torch::Tensor flat = nodes.defined() ? drop(nodes, chance).matmul(weight) : mean_of_words(weight, input, chance);
  return flat.view({input.nodes, -1, heads_, width_});
}

Layer::Parts Layer::parts(const GraphInput& input, const torch::Tensor& nodes) {
  Parts out;
  out.choices = {.score = RankOne{negative_slope_}, .normaliser = normaliser_, .structure = input.sees};
  if (dynamic_) {  // both projections see the same features dropped
    const torch::Tensor both = project(torch::cat({weight_, query_weight_}, 1), input, nodes);
    out.key = out.value = both.select(1, 0).contiguous();
    out.query = both.select(1, 1).contiguous();
    out.choices.score = Additive{attention_, Activation::kLeakyRelu, negative_slope_};
    return out;
  }
  out.value = project(weight_, input, nodes).squeeze(1);
  const torch::Tensor both = torch::bmm(out.value.transpose(0, 1), attention_);  // [heads, nodes, 2]
  out.query = both.select(2, 0).t().unsqueeze(2).contiguous();
  out.key = both.select(2, 1).t().unsqueeze(2).contiguous();
  return out;
}

torch::Tensor Layer::forward(const GraphInput& input, const torch::Tensor& nodes) {
  const Parts p = parts(input, nodes);
  // The engine sweeps all heads of an edge at once where a head's width is a multiple of four: seven classes are made eight.
  const int64_t blanks = dynamic_ ? 0 : (4 - width_ % 4) % 4;
  const torch::Tensor value = blanks ? F::pad(p.value, F::PadFuncOptions({0, blanks})) : p.value;
  const torch::Tensor mixed = attend(p.query, p.key, value, p.choices, {.dropout_p = is_training() ? attention_dropout_ : 0});
  return mixed.narrow(2, 0, width_) + bias_;
}

Model::Model(const Shape& shape) {
  int64_t inputs = shape.features;
  for (int64_t i = 0; i < shape.layers; ++i) {
    const bool last = i + 1 == shape.layers;
    const int64_t heads = last ? shape.output_heads : shape.heads, width = last ? shape.classes : shape.width;
    layers_.push_back(register_module(fmt::format("layer{}", i + 1), std::make_shared<Layer>(inputs, heads, width, shape)));
    inputs = heads * width;
  }
}

torch::Tensor Model::run(const GraphInput& input, std::vector<Layer::Parts>* seen) {
  torch::Tensor nodes = input.values;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (seen) seen->push_back(layers_[i]->parts(input, nodes));
    const torch::Tensor mixed = layers_[i]->forward(input, nodes);
    if (i + 1 == layers_.size()) return mixed.mean(1);
    nodes = torch::elu(mixed.flatten(1));
  }
  return nodes;
}

torch::Tensor Model::forward(const GraphInput& input) { return run(input, nullptr); }

std::vector<Layer::Parts> Model::look(const GraphInput& input) {
  std::vector<Layer::Parts> seen;
  run(input, &seen);
  return seen;
}

}  // namespace fovea::systems::gat
