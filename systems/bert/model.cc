#include "systems/bert/model.h"

#include <torch/torch.h>

#include "train/fields.h"

namespace fovea::systems::bert {
namespace {

constexpr double kSpread = 0.02;
constexpr int64_t kMostSize = int64_t{1} << 31;

torch::nn::Linear head(int64_t inputs, int64_t outputs) {
  torch::nn::Linear out(inputs, outputs);
  const torch::NoGradGuard no_grad;
  out->weight.normal_(0, kSpread);
  out->bias.zero_();
  return out;
}

const std::vector<std::pair<std::string, nn::HiddenActivation>> kActivations = {
    {"gelu", nn::HiddenActivation::kGelu},
    {"gelu_new", nn::HiddenActivation::kGeluTanh},
    {"gelu_pytorch_tanh", nn::HiddenActivation::kGeluTanh},
    {"relu", nn::HiddenActivation::kRelu}};

}  // namespace

std::string activation_name(nn::HiddenActivation activation) {
  for (const auto& [name, one] : kActivations)
    if (one == activation) return name;
  return kActivations[0].first;
}

std::optional<nn::HiddenActivation> activation_named(const std::string& name) {
  for (const auto& [one, activation] : kActivations)
    if (one == name) return activation;
  return {};
}

nn::BertOptions sizes_of(const OptionValues& options, int64_t vocabulary) {
  return {.vocabulary = vocabulary,
          .width = options.integer("width"),
          .hidden = options.integer("hidden"),
          .layers = options.integer("layers"),
          .heads = options.integer("heads"),
          .context = options.integer("context"),
          .dropout = options.number("dropout"),
          .attention_dropout = options.number("dropout")};
}

Json facts_of(const nn::BertOptions& sizes, const HeadsWanted& heads) {
  return {{"vocabulary", sizes.vocabulary},
          {"width", sizes.width},
          {"hidden", sizes.hidden},
          {"layers", sizes.layers},
          {"heads", sizes.heads},
          {"context", sizes.context},
          {"segments", sizes.segments},
          {"activation", activation_name(sizes.activation)},
          {"dropout", sizes.dropout},
          {"attention_dropout", sizes.attention_dropout},
          {"epsilon", sizes.epsilon},
          {"pooler", heads.pooler},
          {"fill", heads.fill},
          {"next", heads.next},
          {"classes", heads.classes},
          {"span", heads.span}};
}

nn::BertOptions sizes_from(const Json& facts) {
  const train::Fields fields(facts, "config.json: facts.");
  const auto activation = activation_named(fields.text("activation"));
  if (!activation) fields.refuse("activation", "gelu, gelu_new or relu");
  for (const char* name : {"dropout", "attention_dropout"})
    if (const double p = fields.number(name); p < 0 || p > 1)
      fields.refuse(name, "a number, 0 to 1");
  if (fields.number("epsilon") <= 0) fields.refuse("epsilon", "a number above 0");
  return {.vocabulary = fields.integer("vocabulary", 1, kMostSize),
          .width = fields.integer("width", 1, kMostSize),
          .hidden = fields.integer("hidden", 1, kMostSize),
          .layers = fields.integer("layers", 1, 10'000),
          .heads = fields.integer("heads", 1, kMostSize),
          .context = fields.integer("context", 1, kMostSize),
          .segments = fields.integer("segments", 1, kMostSize),
          .activation = *activation,
          .dropout = fields.number("dropout"),
          .attention_dropout = fields.number("attention_dropout"),
          .epsilon = fields.number("epsilon")};
}

HeadsWanted heads_from(const Json& facts) {
  const train::Fields fields(facts, "config.json: facts.");
  return {.pooler = fields.flag("pooler"),
          .fill = fields.flag("fill"),
          .next = fields.flag("next"),
          .classes = fields.integer("classes", 0, 1'000'000),
          .span = fields.flag("span")};
}

BertModelImpl::BertModelImpl(const nn::BertOptions& sizes, const HeadsWanted& heads)
    : heads_(heads) {
  encoder = register_module("encoder", nn::Bert(sizes));
  if (heads.pooler) pooler = register_module("pooler", head(sizes.width, sizes.width));
  if (heads.fill) fill = register_module("fill", nn::MaskedWords(sizes));
  if (heads.next) next = register_module("next", head(sizes.width, 2));
  if (heads.classes > 0)
    classifier = register_module("classifier", head(sizes.width, heads.classes));
  if (heads.span) span = register_module("span", head(sizes.width, 2));
}

torch::Tensor BertModelImpl::pooled(const torch::Tensor& states, const torch::Tensor& offsets) {
  return torch::dropout(torch::tanh(pooler(nn::first_states(states, offsets))),
                        encoder->options().dropout, is_training());
}

torch::Tensor BertModelImpl::words_at(const torch::Tensor& states, const torch::Tensor& places) {
  return fill(states.index_select(0, places), encoder->words->weight);
}

torch::Tensor BertModelImpl::embeddings(const nn::BertInput& input) {
  const torch::Tensor mean = nn::mean_states(encoder(input), input.offsets);
  return mean / mean.norm(2, -1, true).clamp_min(1e-12);
}

bool has_no_decay(const std::string& name) {
  return name.ends_with("bias") || name.find("norm") != std::string::npos;
}

}  // namespace fovea::systems::bert
