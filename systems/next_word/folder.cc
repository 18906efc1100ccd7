#include "systems/next_word/folder.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "systems/next_word/model.h"
#include "train/run/tensor_file.h"
#include "train/usage_error.h"

namespace fovea::systems::next_word {
namespace {

// Our queries and keys turn neighbouring numbers of a head, those of transformers turn number i with
// number i + width / 2: rows of the maps change their places.
torch::Tensor halves_of(const torch::Tensor& weight, int64_t heads) {
  return weight.view({heads, -1, 2, weight.size(1)}).transpose(1, 2).reshape(weight.sizes());
}

Json config_of(const nn::LanguageModelOptions& o, const Tokens& tokens) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", o.vocabulary},
          {"hidden_size", o.width},
          {"intermediate_size", o.hidden},
          {"num_hidden_layers", o.layers},
          {"num_attention_heads", o.heads},
          {"num_key_value_heads", o.key_heads > 0 ? o.key_heads : o.heads},
          {"max_position_embeddings", o.context},
          {"hidden_act", "silu"},
          {"rms_norm_eps", nn::LanguageNormImpl::kEpsilon},
          {"rope_theta", nn::GroupedHeadsOptions{}.rotary_base},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"tie_word_embeddings", o.tie},
          {"bos_token_id", tokens.begin()},
          {"eos_token_id", tokens.end()},
          {"torch_dtype", "float32"}};
}

std::map<std::string, torch::Tensor> llama_weights(const nn::LanguageModelImpl& model) {
  const nn::LanguageModelOptions& o = model.options();
  const auto weights = model.named_parameters();
  const auto weight = [&](const std::string& name) {
    return weights[name + ".weight"].detach().cpu();
  };
  std::map<std::string, torch::Tensor> out = {
      {"model.embed_tokens.weight", weight("tok_embeddings")},
      {"model.norm.weight", weight("norm")}};
  if (!o.tie) out["lm_head.weight"] = weight("output");
  for (int64_t layer = 0; layer < o.layers; ++layer) {
    for (const auto& [ours, theirs] : {std::pair("attention.wv", "self_attn.v_proj"),
                                       {"attention.wo", "self_attn.o_proj"},
                                       {"attention_norm", "input_layernorm"},
                                       {"ffn_norm", "post_attention_layernorm"},
                                       {"w1", "mlp.gate_proj"},
                                       {"w2", "mlp.down_proj"},
                                       {"w3", "mlp.up_proj"}})
      out[fmt::format("model.layers.{}.{}.weight", layer, theirs)] =
          weight(fmt::format("layers.{}.{}", layer, ours));
    const auto turned = [&](const char* ours, const char* theirs, int64_t heads) {
      out[fmt::format("model.layers.{}.self_attn.{}.weight", layer, theirs)] =
          halves_of(weight(fmt::format("layers.{}.attention.{}", layer, ours)), heads);
    };
    turned("wq", "q_proj", o.heads);
    turned("wk", "k_proj", o.key_heads > 0 ? o.key_heads : o.heads);
  }
  for (auto& [name, tensor] : out) tensor = tensor.contiguous();
  return out;
}

}  // namespace

Written folder_files(const nn::LanguageModelImpl& model, const Tokens& tokens) {
  const nn::LanguageModelOptions& o = model.options();
  if (o.norm != nn::NormKind::kRms)
    throw UsageError("norm: layer, expected rms: a Llama has no other");
  if (o.positions != nn::Positions::kRotary)
    throw UsageError("positions: learned, expected rotary: a Llama has no others");
  Json pieces = Json::array();
  for (int64_t id = 0; id < tokens.size(); ++id) pieces.push_back(tokens.piece(id));
  Written out{.files = {{"config.json", config_of(o, tokens).dump(2) + "\n"},
                        {"model.safetensors",
                         train::tensor_bytes({llama_weights(model), {{"format", "pt"}}})},
                        {"tokens.json", pieces.dump() + "\n"}}};
  if (const std::string theirs = tokens.llama2c_bytes(); !theirs.empty()) {
    out.files["model.bin"] = data::llama2c_bytes(checkpoint_of(model));
    out.files["tokenizer.bin"] = theirs;
  }
  return out;
}

}  // namespace fovea::systems::next_word
