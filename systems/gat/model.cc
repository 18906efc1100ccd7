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

torch::Tensor int_tensor(const std::vector<int32_t>& values) {
  return torch::tensor(at::ArrayRef<int32_t>(values), torch::kInt32);
}

Graph moved(const Graph& graph, torch::Device device) {
  return graph.columns.defined() ? Graph{graph.row_offsets.to(device), graph.columns.to(device)}
                                 : graph;
}

// A node is a bag of one instance.
data::Bags as_bags(const data::CitationGraph& graph) {
  data::Bags out{.width = graph.features, .names = {}, .labels = {}, .features = {}};
  for (auto row = graph.values.begin(); row != graph.values.end(); row += graph.features)
    out.features.emplace_back(row, row + graph.features);
  return out;
}

torch::Tensor standardised(const data::CitationGraph& graph, const data::Scaling& scaling) {
  data::Bags nodes = as_bags(graph);
  data::apply(scaling, nodes);
  std::vector<float> values;
  values.reserve(graph.values.size());
  for (const auto& row : nodes.features) values.insert(values.end(), row.begin(), row.end());
  return torch::tensor(at::ArrayRef<float>(values)).view({graph.nodes, graph.features});
}

}  // namespace

data::Scaling scaling_of(const data::CitationGraph& graph, const std::vector<int64_t>& nodes) {
  return data::scaling_of(as_bags(graph), nodes);
}

torch::Tensor survivors(int64_t count, double dropout) {
  // Four draws of sixteen bits from one hashed counter. libtorch draws one number at a time, which
  // would take longer than the layer itself.
  const auto threshold = static_cast<uint16_t>(std::lround(dropout * 65536));
  const auto seed = static_cast<uint64_t>(
      torch::randint(std::numeric_limits<int64_t>::max(), {1}, torch::kInt64).item<int64_t>());
  torch::Tensor out = torch::empty({(count + 3) / 4 * 4}, torch::kBool);
  bool* to = out.data_ptr<bool>();
  for (int64_t i = 0; i < out.numel(); i += 4) {
    const uint64_t bits =
        data::Random(seed + static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u).next();
    for (int64_t k = 0; k < 4; ++k)
      to[i + k] = static_cast<uint16_t>(bits >> (16 * k)) >= threshold;
  }
  return out.narrow(0, 0, count);
}

torch::Tensor drop(const torch::Tensor& values, double dropout) {
  if (dropout == 0) return values;
  // Only the mask is kept for the backward pass, a byte each.
  return values.mul(survivors(values.numel(), dropout).view(values.sizes()).to(values.device()))
      .mul_(1 / (1 - dropout));
}

GraphInput GraphInput::to(torch::Device device) const {
  return {moved(sees, device),
          moved(words, device),
          values.defined() ? values.to(device) : values,
          nodes,
          features,
          with_neighbours};
}

GraphInput input_of(const data::CitationGraph& graph, const data::Csr& sees,
                    const data::Scaling& scaling) {
  GraphInput out;
  out.nodes = graph.nodes;
  out.features = graph.features;
  out.sees = {int_tensor(sees.row_offsets), int_tensor(sees.columns)};
  if (!scaling.mean.empty()) {
    out.values = standardised(graph, scaling);
    return out;
  }
  if (!graph.has_words()) {
    const torch::Tensor rows =
        torch::tensor(at::ArrayRef<float>(graph.values)).view({graph.nodes, graph.features});
    const torch::Tensor sums = rows.abs().sum(1, true);
    out.values = rows / torch::where(sums > 0, sums, torch::ones_like(sums));
    return out;
  }
  out.words = {int_tensor(graph.words.row_offsets), int_tensor(graph.words.columns)};
  return out;
}

Features features_of(const GraphInput& input, const torch::Tensor& nodes, double dropout) {
  Features out{.nodes = input.nodes, .width = input.features};
  if (nodes.defined()) {
    out.values = drop(nodes, dropout);
    return out;
  }
  out.words = input.words;
  if (dropout == 0) return out;
  // A dropped word is not read: the result is the mean of the remaining words, times their number,
  // divided by the number of all words and by the probability of remaining.
  const torch::Tensor stays =
      survivors(input.words.columns.numel(), dropout).to(input.words.columns.device());
  const torch::Tensor ends = F::pad(stays.cumsum(0, torch::kInt32), F::PadFuncOptions({1, 0}));
  out.words = {ends.index_select(0, input.words.row_offsets),
               input.words.columns.masked_select(stays)};
  const torch::Tensor all = input.words.row_offsets.diff(), left = out.words.row_offsets.diff();
  out.factor = (left / (all.clamp_min(1) * (1 - dropout))).to(torch::kFloat32).unsqueeze(1);
  return out;
}

torch::Tensor product(const Features& features, const torch::Tensor& weight) {
  if (features.values.defined()) return features.values.matmul(weight);
  const auto blank = [&](int64_t n) { return torch::zeros({n, 1, 1}, weight.options()); };
  // Equal scores: the softmax is the mean. This takes the engine's path for graphs.
  const torch::Tensor mean =
      attend(blank(features.nodes), blank(features.width), weight.unsqueeze(1),
             {.score = RankOne{}, .structure = features.words})
          .squeeze(1);
  return features.factor.defined() ? mean * features.factor : mean;
}

Layer::Layer(int64_t inputs, int64_t heads, int64_t width, const Shape& shape)
    : heads_(heads),
      width_(width),
      dropout_(shape.dropout),
      attention_dropout_(shape.attention_dropout),
      negative_slope_(shape.negative_slope),
      dynamic_(shape.dynamic),
      normaliser_(shape.normaliser) {
  weight_ = register_parameter("weight", glorot({inputs, heads * width}, inputs, heads * width));
  if (dynamic_) {
    query_weight_ =
        register_parameter("query_weight", glorot({inputs, heads * width}, inputs, heads * width));
    attention_ = register_parameter("attention", glorot({heads, width}, width, 1));
  } else {
    attention_ = register_parameter("attention", glorot({heads, width, 2}, width, 1));  // a1, a2
  }
  bias_ = register_parameter("bias", torch::zeros({heads, width}));
}

Layer::Parts Layer::parts(const GraphInput& input, const torch::Tensor& nodes) {
  const Features features = features_of(input, nodes, is_training() ? dropout_ : 0);
  const auto by_head = [&](const torch::Tensor& flat) { return flat.view({-1, heads_, width_}); };
  const auto of_all = [&](const torch::Tensor& own) {
    return input.with_neighbours ? input.with_neighbours(own) : own;
  };
  Parts out;
  out.choices = {
      .score = RankOne{negative_slope_}, .normaliser = normaliser_, .structure = input.sees};
  out.value = by_head(of_all(product(features, weight_)));
  if (dynamic_) {
    out.key = out.value;
    out.query = by_head(product(features, query_weight_));
    out.choices.score = Additive{attention_, Activation::kLeakyRelu, negative_slope_};
    return out;
  }
  // a·(W h) = (W a)·h: the two halves of the score are a narrow product.
  const torch::Tensor halves =
      (weight_.view({-1, heads_, width_, 1}) * attention_).sum(2);  // [inputs, heads, 2]
  const torch::Tensor both =
      product(features, halves.transpose(1, 2).flatten(1)).view({input.nodes, 2, heads_, 1});
  out.query = both.select(1, 0).contiguous();
  out.key = of_all(both.select(1, 1).contiguous());
  return out;
}

torch::Tensor Layer::forward(const GraphInput& input, const torch::Tensor& nodes) {
  const Parts p = parts(input, nodes);
  // The engine processes all heads of an edge together if a head's width is a multiple of four, so
  // seven classes are padded to eight.
  const int64_t blanks = dynamic_ ? 0 : (4 - width_ % 4) % 4;
  const torch::Tensor value = blanks ? F::pad(p.value, F::PadFuncOptions({0, blanks})) : p.value;
  const torch::Tensor mixed = attend(p.query, p.key, value, p.choices,
                                     {.dropout_p = is_training() ? attention_dropout_ : 0});
  return mixed.narrow(2, 0, width_) + bias_;
}

Model::Model(const Shape& shape) {
  int64_t inputs = shape.features;
  for (int64_t i = 0; i < shape.layers; ++i) {
    const bool last = i + 1 == shape.layers;
    const int64_t heads = last ? shape.output_heads : shape.heads,
                  width = last ? shape.classes : shape.width;
    layers_.push_back(register_module(fmt::format("layer{}", i + 1),
                                      std::make_shared<Layer>(inputs, heads, width, shape)));
    inputs = heads * width;
  }
}

torch::Tensor Model::run(const GraphInput& input, std::vector<Layer::Parts>* seen) {
  torch::Tensor nodes = input.values;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (seen) seen->push_back(layers_[i]->parts(input, nodes));
    const torch::Tensor mixed = layers_[i]->forward(input, nodes);
    if (i + 1 == layers_.size()) return mixed.mean(1);
    nodes = mixed.flatten(1);
    torch::elu_(nodes);
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
