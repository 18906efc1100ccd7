#include "systems/next_word/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "train/fields.h"

namespace fovea::systems::next_word {
namespace {

constexpr int64_t kMost = int64_t{1} << 24;

// Arrays of a checkpoint that are stacked over the layers, and a layer's weights.
constexpr std::pair<const char*, const char*> kOfLayers[] = {{"wq", "attention.wq"},
                                                             {"wk", "attention.wk"},
                                                             {"wv", "attention.wv"},
                                                             {"wo", "attention.wo"},
                                                             {"attention_norm", "attention_norm"},
                                                             {"ffn_norm", "ffn_norm"},
                                                             {"w1", "w1"},
                                                             {"w2", "w2"},
                                                             {"w3", "w3"}};

}  // namespace

nn::LanguageModelOptions sizes_of(const OptionValues& o, int64_t vocabulary) {
  return {.vocabulary = vocabulary,
          .width = o.integer("width"),
          .hidden = o.integer("hidden"),
          .layers = o.integer("layers"),
          .heads = o.integer("heads"),
          .key_heads = o.integer("key_heads"),
          .context = o.integer("context"),
          .norm = o.text("norm") == "layer" ? nn::NormKind::kLayer : nn::NormKind::kRms,
          .positions =
              o.text("positions") == "learned" ? nn::Positions::kLearned : nn::Positions::kRotary,
          .tie = o.flag("tie"),
          .dropout = o.number("dropout")};
}

nn::LanguageModelOptions sizes_of(const data::Llama2c& c) {
  return {.vocabulary = c.vocabulary,
          .width = c.width,
          .hidden = c.hidden,
          .layers = c.layers,
          .heads = c.heads,
          .key_heads = c.key_heads,
          .context = c.context,
          .tie = !c.own_output};
}

Json facts_of(const nn::LanguageModelOptions& s) {
  return {{"vocabulary", s.vocabulary},
          {"width", s.width},
          {"hidden", s.hidden},
          {"layers", s.layers},
          {"heads", s.heads},
          {"key_heads", s.key_heads},
          {"context", s.context},
          {"norm", s.norm == nn::NormKind::kLayer ? "layer" : "rms"},
          {"positions", s.positions == nn::Positions::kLearned ? "learned" : "rotary"},
          {"tie", s.tie},
          {"dropout", s.dropout}};
}

nn::LanguageModelOptions sizes_from(const Json& facts) {
  const train::Fields fields(facts, "config.json: facts.");
  const auto one_of = [&](const char* name, const char* a, const char* b) {
    const std::string text = fields.text(name);
    if (text != a && text != b) fields.refuse(name, fmt::format("{} or {}", a, b));
    return text == b;
  };
  if (const double p = fields.number("dropout"); p < 0 || p > 1)
    fields.refuse("dropout", "a number, 0 to 1");
  return {.vocabulary = fields.integer("vocabulary", 1, kMost),
          .width = fields.integer("width", 1, kMost),
          .hidden = fields.integer("hidden", 1, kMost),
          .layers = fields.integer("layers", 1, kMost),
          .heads = fields.integer("heads", 1, kMost),
          .key_heads = fields.integer("key_heads", 0, kMost),
          .context = fields.integer("context", 1, kMost),
          .norm = one_of("norm", "rms", "layer") ? nn::NormKind::kLayer : nn::NormKind::kRms,
          .positions = one_of("positions", "rotary", "learned") ? nn::Positions::kLearned
                                                                : nn::Positions::kRotary,
          .tie = fields.flag("tie"),
          .dropout = fields.number("dropout")};
}

std::map<std::string, torch::Tensor> weights_of(const data::Llama2c& c) {
  const auto array = [&](const std::string& name) { return train::tensor_of(c.arrays.at(name)); };
  std::map<std::string, torch::Tensor> out = {{"tok_embeddings.weight", array("tok_embeddings")},
                                              {"norm.weight", array("norm")}};
  if (c.own_output) out["output.weight"] = array("output");
  for (const auto& [theirs, ours] : kOfLayers) {
    const torch::Tensor stacked = array(theirs);
    for (int64_t layer = 0; layer < c.layers; ++layer)
      out[fmt::format("layers.{}.{}.weight", layer, ours)] = stacked[layer];
  }
  return out;
}

data::Llama2c checkpoint_of(const nn::LanguageModelImpl& model) {
  const nn::LanguageModelOptions& o = model.options();
  const auto weights = model.named_parameters();
  data::Llama2c out{.width = o.width,
                    .hidden = o.hidden,
                    .layers = o.layers,
                    .heads = o.heads,
                    .key_heads = o.key_heads > 0 ? o.key_heads : o.heads,
                    .vocabulary = o.vocabulary,
                    .context = o.context,
                    .own_output = !o.tie};
  const auto put = [&](const std::string& name, const torch::Tensor& tensor) {
    out.arrays[name] = train::array_of(tensor.detach().cpu().contiguous());
  };
  put("tok_embeddings", weights["tok_embeddings.weight"]);
  put("norm", weights["norm.weight"]);
  if (out.own_output) put("output", weights["output.weight"]);
  for (const auto& [theirs, ours] : kOfLayers) {
    std::vector<torch::Tensor> stacked;
    for (int64_t layer = 0; layer < o.layers; ++layer)
      stacked.push_back(weights[fmt::format("layers.{}.{}.weight", layer, ours)]);
    put(theirs, torch::stack(stacked));
  }
  return out;
}

}  // namespace fovea::systems::next_word
