#include "fovea/nn/language_steps.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/layers/row.h"
#include "fovea/engine.h"
#include "torch/engine_call.h"

namespace fovea::nn {
namespace {

using engine::DType;
using engine::PackedRows;
using engine::View;

std::vector<float> copied(const at::Tensor& x) {
  const at::Tensor flat = x.detach().contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

PackedRows packed(const std::vector<at::Tensor>& matrices) {
  size_t outputs = 0;
  for (const at::Tensor& matrix : matrices) outputs += static_cast<size_t>(matrix.size(0));
  PackedRows out(outputs, static_cast<size_t>(matrices[0].size(1)));
  size_t first = 0;
  for (const at::Tensor& matrix : matrices) {
    const at::Tensor rows = matrix.detach().contiguous();
    out.put(first, rows.const_data_ptr<float>(), static_cast<size_t>(rows.size(0)));
    first += static_cast<size_t>(rows.size(0));
  }
  return out;
}

struct RowNorm {
  explicit RowNorm(const LanguageNormImpl& norm) : weight(copied(norm.weight)) {
    if (norm.bias.defined()) bias = copied(norm.bias);
  }
  void operator()(const std::vector<float>& x, std::vector<float>& out) const {
    engine::normalise_row(x.data(), weight.size(), weight.data(),
                          bias.empty() ? nullptr : bias.data(),
                          static_cast<float>(LanguageNormImpl::kEpsilon), out.data());
  }
  std::vector<float> weight, bias;
};

struct RowLayer {
  explicit RowLayer(LanguageLayerImpl& layer)
      : attention_norm(*layer.attention_norm),
        ffn_norm(*layer.ffn_norm),
        all_heads(packed({layer.attention->wq->weight, layer.attention->wk->weight,
                          layer.attention->wv->weight})),
        out(packed({layer.attention->wo->weight})),
        gate(packed({layer.w1->weight})),
        up(packed({layer.w3->weight})),
        down(packed({layer.w2->weight})) {}
  RowNorm attention_norm, ffn_norm;
  PackedRows all_heads, out, gate, up, down;
  std::vector<float> keys, values;  // [room, key heads, head width]
};

void check(LanguageModelImpl& model) {
  for (const at::Tensor& p : model.parameters())
    if (!p.is_cpu() || p.scalar_type() != at::kFloat)
      throw InvalidArgument("model: " + std::string(p.dtype().name()) + " on " + p.device().str() +
                            ", expected float on the cpu");
}

}  // namespace

struct LanguageSteps::State {
  explicit State(LanguageModelImpl& model)
      : options(model.options()),
        heads(static_cast<size_t>(options.heads)),
        key_heads(static_cast<size_t>(options.key_heads > 0 ? options.key_heads : options.heads)),
        width(static_cast<size_t>(options.width)),
        head_width(width / heads),
        shared(key_heads * head_width),
        embedding(copied(model.tok_embeddings->weight)),
        norm(*model.norm),
        output(packed({model.output_weight()})) {
    if (!model.pos_embeddings.is_empty()) positions = copied(model.pos_embeddings->weight);
    for (int64_t i = 0; i < options.layers; ++i) layers.emplace_back(model.layer(i));
    for (size_t i = 0; i < head_width / 2; ++i)
      rates.push_back(
          std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(head_width)));
    turns.resize(head_width);
    x.resize(width);
    y.resize(width);
    qkv.resize(layers[0].all_heads.padded());
    mixed.resize(width);
    added.resize(layers[0].out.padded());
    gate.resize(layers[0].gate.padded());
    up.resize(gate.size());
    logits.resize(output.padded());
    const auto of = [](size_t n) { return static_cast<int64_t>(n); };
    problem.query = View::of(qkv.data(), DType::kFloat32, {1, of(heads), 1, of(head_width)});
    problem.key = {.data = nullptr,
                   .dtype = DType::kFloat32,
                   .rank = 4,
                   .size = {1, of(key_heads), 0, of(head_width)},
                   .stride = {0, of(head_width), of(shared), 1}};
    problem.value = problem.key;
    problem.structure = engine::Causal{};
    result.output = View::of(mixed.data(), DType::kFloat32, {1, of(heads), 1, of(head_width)});
  }

  // Turns the heads at `to` by the position's angles.
  void turn(float* to, size_t count) const {
    for (size_t h = 0; h < count; ++h, to += head_width)
      for (size_t i = 0; i < head_width; i += 2) {
        const float a = to[i], b = to[i + 1], c = turns[i], s = turns[i + 1];
        to[i] = a * c - b * s;
        to[i + 1] = a * s + b * c;
      }
  }
  void add(std::vector<float>& to, const std::vector<float>& what) const {
    for (size_t c = 0; c < width; ++c) to[c] += what[c];
  }

  void attend_and_add(RowLayer& layer) {
    layer.attention_norm(x, y);
    engine::row_product(layer.all_heads, y.data(), qkv.data(), parallel);
    if (positions.empty()) turn(qkv.data(), heads + key_heads);
    const float* const key = qkv.data() + width;
    layer.keys.insert(layer.keys.end(), key, key + shared);
    layer.values.insert(layer.values.end(), key + shared, key + 2 * shared);
    problem.key.data = layer.keys.data();
    problem.value.data = layer.values.data();
    problem.key.size[2] = problem.value.size[2] = length + 1;
    problem.query_offset = length;
    engine::forward(problem, result, parallel);
    engine::row_product(layer.out, mixed.data(), added.data(), parallel);
    add(x, added);
  }
  void feed_and_add(const RowLayer& layer) {
    layer.ffn_norm(x, y);
    engine::row_product(layer.gate, y.data(), gate.data(), parallel);
    engine::row_product(layer.up, y.data(), up.data(), parallel);
    engine::gate_row(gate.data(), up.data(), layer.gate.outputs());
    engine::row_product(layer.down, gate.data(), added.data(), parallel);
    add(x, added);
  }

  LanguageModelOptions options;
  size_t heads, key_heads, width, head_width, shared;
  std::vector<float> embedding, positions;  // no positions: rotary
  RowNorm norm;
  PackedRows output;
  std::vector<RowLayer> layers;
  std::vector<double> rates;  // of rotation
  std::vector<float> turns;   // cosine and sine of the position's angles
  std::vector<float> x, y, qkv, mixed, added, gate, up, logits;
  int64_t length = 0;
  engine::Problem problem;
  engine::Result result;
  const engine::Parallel& parallel = torch_parallel();
};

LanguageSteps::LanguageSteps(LanguageModelImpl& model) {
  check(model);
  state_ = std::make_unique<State>(model);
}
LanguageSteps::~LanguageSteps() = default;
LanguageSteps::LanguageSteps(LanguageSteps&&) noexcept = default;
LanguageSteps& LanguageSteps::operator=(LanguageSteps&&) noexcept = default;

std::span<const float> LanguageSteps::step(int64_t token) {
  State& s = *state_;
  if (token < 0 || token >= s.options.vocabulary)
    throw InvalidArgument("token: " + std::to_string(token) + ", expected 0 to " +
                          std::to_string(s.options.vocabulary - 1));
  if (s.length >= s.options.context)
    throw InvalidArgument("step: the context of " + std::to_string(s.options.context) +
                          " tokens is full");
  const float* const row = s.embedding.data() + static_cast<size_t>(token) * s.width;
  std::copy(row, row + s.width, s.x.begin());
  if (!s.positions.empty()) {
    const float* const at = s.positions.data() + static_cast<size_t>(s.length) * s.width;
    for (size_t c = 0; c < s.width; ++c) s.x[c] += at[c];
  }
  for (size_t i = 0; i < s.rates.size(); ++i) {
    const double angle = static_cast<double>(s.length) * s.rates[i];
    s.turns[2 * i] = static_cast<float>(std::cos(angle));
    s.turns[2 * i + 1] = static_cast<float>(std::sin(angle));
  }
  for (RowLayer& layer : s.layers) {
    s.attend_and_add(layer);
    s.feed_and_add(layer);
  }
  s.norm(s.x, s.y);
  engine::row_product(s.output, s.y.data(), s.logits.data(), s.parallel);
  ++s.length;
  return {s.logits.data(), static_cast<size_t>(s.options.vocabulary)};
}

void LanguageSteps::clear() {
  state_->length = 0;
  for (RowLayer& layer : state_->layers) {
    layer.keys.clear();
    layer.values.clear();
  }
}

int64_t LanguageSteps::length() const { return state_->length; }

}  // namespace fovea::nn
