#include "systems/bert/folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <cstring>
#include <filesystem>

#include "data/files/file.h"
#include "data/files/json.h"
#include "systems/bert/names.h"
#include "text/wordpiece/read.h"
#include "train/fields.h"
#include "train/run/tensor_file.h"

namespace fovea::systems::bert {
namespace {

namespace fs = std::filesystem;
using data::FileError;
using Tensors = std::map<std::string, torch::Tensor>;

constexpr int64_t kMost = 1'000'000'000;

// An entry that a BERT may leave out.
template <class Value>
Value entry(const train::Fields& fields, const Json& config, const char* name, Value otherwise) {
  if (!config.contains(name) || config[name].is_null()) return otherwise;
  if constexpr (std::is_same_v<Value, bool>)
    return fields.flag(name);
  else if constexpr (std::is_same_v<Value, double>)
    return fields.number(name);
  else if constexpr (std::is_same_v<Value, int64_t>)
    return fields.integer(name, 0, kMost);
  else
    return fields.text(name);
}

void expect(const std::string& path, const char* name, const std::string& got,
            const std::string& expected) {
  if (got != expected)
    throw FileError(path, 0, fmt::format("{}: {}, expected {}", name, data::shown(got), expected));
}

nn::BertOptions sizes_in(const Json& config, const std::string& path) {
  const train::Fields fields(config, path + ": ");
  expect(path, "model_type", fields.text("model_type"), "bert");
  expect(path, "position_embedding_type",
         entry<std::string>(fields, config, "position_embedding_type", "absolute"), "absolute");
  for (const char* name : {"is_decoder", "add_cross_attention"})
    if (entry(fields, config, name, false))
      throw FileError(path, 0, fmt::format("{}: true, expected an encoder alone", name));
  if (!entry(fields, config, "tie_word_embeddings", true))
    throw FileError(path, 0,
                    "tie_word_embeddings: false, expected true: words are filled in by their "
                    "embeddings");
  const std::string activation = entry<std::string>(fields, config, "hidden_act", "gelu");
  const auto known = activation_named(activation);
  if (!known)
    throw FileError(
        path, 0,
        fmt::format("hidden_act: {}, expected gelu, gelu_new, gelu_pytorch_tanh or relu",
                    data::shown(activation)));
  nn::BertOptions out{
      .vocabulary = fields.integer("vocab_size", 1, kMost),
      .width = fields.integer("hidden_size", 1, kMost),
      .hidden = fields.integer("intermediate_size", 1, kMost),
      .layers = fields.integer("num_hidden_layers", 1, 10'000),
      .heads = fields.integer("num_attention_heads", 1, kMost),
      .context = fields.integer("max_position_embeddings", 3, kMost),
      .segments = entry<int64_t>(fields, config, "type_vocab_size", 2),
      .activation = *known,
      .dropout = entry(fields, config, "hidden_dropout_prob", 0.1),
      .attention_dropout = entry(fields, config, "attention_probs_dropout_prob", 0.1),
      .epsilon = entry(fields, config, "layer_norm_eps", 1e-12)};
  if (out.segments < 1) throw FileError(path, 0, "type_vocab_size: 0, expected at least 1");
  if (out.width % out.heads != 0)
    throw FileError(path, 0,
                    fmt::format("num_attention_heads: {}, expected a divisor of hidden_size {}",
                                out.heads, out.width));
  for (const double p : {out.dropout, out.attention_dropout})
    if (p < 0 || p >= 1)
      throw FileError(path, 0, fmt::format("dropout: {}, expected 0 to below 1", p));
  if (!(out.epsilon > 0 && out.epsilon <= 1))  // it is added to a variance whose root is divided by
    throw FileError(path, 0, fmt::format("layer_norm_eps: {}, expected above 0 to 1", out.epsilon));
  return out;
}

std::vector<std::string> classes_in(const Json& config, int64_t count) {
  std::vector<std::string> out;
  const auto labels = config.find("id2label");
  for (int64_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    const bool named = labels != config.end() && labels->is_object() && labels->contains(number) &&
                       (*labels)[number].is_string();
    out.push_back(named ? (*labels)[number].get<std::string>() : number);
  }
  return out;
}

text::WordPiece pieces_in(const fs::path& folder) {
  const std::string tokenizer = (folder / "tokenizer.json").string(),
                    vocabulary = (folder / "vocab.txt").string(),
                    config = (folder / "tokenizer_config.json").string();
  if (fs::exists(tokenizer)) return text::parse_tokenizer(data::read_file(tokenizer), tokenizer);
  if (!fs::exists(vocabulary))
    throw FileError(folder.string(), 0, "neither tokenizer.json nor vocab.txt, expected one");
  const text::Normalisation normalisation =
      fs::exists(config) ? text::parse_normalisation(data::read_file(config), config)
                         : text::Normalisation{};
  return text::parse_vocabulary(data::read_file(vocabulary), vocabulary, normalisation);
}

// LayerNorm's two weights have other names in files that come from TensorFlow.
Tensors with_present_names(Tensors tensors) {
  Tensors out;
  for (auto& [name, tensor] : tensors) {
    std::string now = name;
    for (const auto& [old, present] :
         {std::pair("LayerNorm.gamma", "LayerNorm.weight"), {"LayerNorm.beta", "LayerNorm.bias"}})
      if (now.ends_with(old))
        now.replace(now.size() - std::strlen(old), std::string::npos, present);
    out[now] = std::move(tensor);
  }
  return out;
}

// Takes tensors out of a file by their names there, with the shapes that a model has.
class Taker {
 public:
  Taker(Tensors tensors, std::string path) : tensors_(std::move(tensors)), path_(std::move(path)) {}

  bool has(const std::string& name) const { return tensors_.contains(name); }
  // A head is present if any of its tensors is: a missing one is then an error.
  bool has_any(const std::vector<WeightName>& names) const {
    for (const WeightName& name : names)
      for (const std::string& one : name.theirs)
        if (has(one)) return true;
    return false;
  }
  int64_t rows(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || found->second.dim() == 0)
      throw FileError(path_, 0, fmt::format("no tensor '{}'", name));
    return found->second.size(0);
  }
  void check(const std::string& name, const std::vector<int64_t>& shape) const {
    found(name, shape);
  }
  torch::Tensor take(const WeightName& name, torch::IntArrayRef shape) {
    std::vector<torch::Tensor> parts;
    std::vector<int64_t> of_part(shape.begin(), shape.end());
    of_part[0] /= static_cast<int64_t>(name.theirs.size());
    for (const std::string& one : name.theirs) parts.push_back(take(one, of_part));
    return torch::cat(parts);
  }
  void drop(const std::string& name) { tensors_.erase(name); }
  std::vector<std::string> left() const {
    std::vector<std::string> out;
    for (const auto& [name, tensor] : tensors_) out.push_back(name);
    return out;
  }

 private:
  const torch::Tensor& found(const std::string& name, const std::vector<int64_t>& shape) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw FileError(path_, 0, fmt::format("no tensor '{}'", name));
    const torch::Tensor& tensor = found->second;
    if (tensor.sizes() != torch::IntArrayRef(shape))
      throw FileError(path_, 0,
                      fmt::format("'{}': shape {}, expected {}, from config.json", name,
                                  text_of(tensor.sizes()), text_of(shape)));
    if (!tensor.is_floating_point())
      throw FileError(path_, 0, fmt::format("'{}': whole numbers, expected floating point", name));
    return tensor;
  }
  torch::Tensor take(const std::string& name, const std::vector<int64_t>& shape) {
    torch::Tensor out = found(name, shape).to(torch::kFloat);
    if (!out.isfinite().all().item<bool>())
      throw FileError(path_, 0, fmt::format("'{}': not finite, expected numbers", name));
    tensors_.erase(name);
    return out;
  }
  static std::string text_of(torch::IntArrayRef shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
  }
  Tensors tensors_;
  std::string path_;
};

HeadsWanted heads_in(const Taker& taker, const std::string& prefix) {
  const HeadNames names = head_names(prefix);
  HeadsWanted out{.pooler = taker.has_any(names.pooler),
                  .fill = taker.has_any(names.fill),
                  .next = taker.has_any(names.next),
                  .classes = taker.has_any(names.classifier) ? taker.rows("classifier.weight") : 0,
                  .span = taker.has_any(names.span)};
  // A head that uses the pooler cannot be without it.
  out.pooler |= out.next || out.classes > 0;
  return out;
}

// Checks that a model of these sizes is about as large as the file: the sizes may come from
// anywhere.
void check_sizes(const Taker& taker, const nn::BertOptions& o, const std::string& prefix) {
  taker.check(prefix + "embeddings.word_embeddings.weight", {o.vocabulary, o.width});
  taker.check(prefix + "embeddings.position_embeddings.weight", {o.context, o.width});
  taker.check(prefix + "embeddings.token_type_embeddings.weight", {o.segments, o.width});
  for (int64_t i = 0; i < o.layers; ++i)
    taker.check(fmt::format("{}encoder.layer.{}.intermediate.dense.weight", prefix, i),
                {o.hidden, o.width});
}

// Other forms in which the weights may lie in the folder: what writes them as one model.safetensors.
void check_form(const fs::path& folder) {
  if (fs::exists(folder / "model.safetensors")) return;
  for (const auto& [name, what] :
       {std::pair("model.safetensors.index.json", "weights in several files"),
        {"pytorch_model.bin", "a pickle, which may run code"}})
    if (fs::exists(folder / name))
      throw FileError((folder / name).string(), 0,
                      fmt::format("{}, expected model.safetensors, which "
                                  "model.save_pretrained(folder, max_shard_size=\"1TB\") of "
                                  "transformers writes",
                                  what));
}

std::string architecture_of(const HeadsWanted& heads) {
  if (heads.classes > 0) return "BertForSequenceClassification";
  if (heads.span) return "BertForQuestionAnswering";
  if (heads.fill) return heads.next ? "BertForPreTraining" : "BertForMaskedLM";
  return heads.next ? "BertForNextSentencePrediction" : "BertModel";
}

}  // namespace

Folder read_folder(const std::string& path) {
  const fs::path folder(path);
  if (!fs::is_directory(folder))
    throw FileError(path, 0, "no folder, expected one with config.json and model.safetensors");
  const std::string config_path = (folder / "config.json").string(),
                    weights_path = (folder / "model.safetensors").string();
  const Json config = data::parse_json(data::read_file(config_path), config_path);
  const nn::BertOptions sizes = sizes_in(config, config_path);
  text::WordPiece pieces = pieces_in(folder);
  if (pieces.size() > sizes.vocabulary)
    throw FileError(config_path, 0,
                    fmt::format("vocab_size: {}, expected at least {}, the tokenizer's pieces",
                                sizes.vocabulary, pieces.size()));
  for (const char* special : {"[PAD]", "[CLS]", "[SEP]"})
    if (!pieces.find(special))
      throw FileError(path, 0, fmt::format("the tokenizer has no {}", special));

  check_form(folder);
  Taker taker(with_present_names(train::read_tensors(weights_path).tensors), weights_path);
  const std::string prefix = taker.has("bert.embeddings.word_embeddings.weight") ? "bert." : "";
  check_sizes(taker, sizes, prefix);
  const HeadsWanted heads = heads_in(taker, prefix);
  const BertModel model(sizes, heads);  // for the shapes of its weights
  Folder out{.sizes = sizes, .heads = heads, .weights = {}, .pieces = std::move(pieces)};
  const auto shapes = model->named_parameters();
  std::vector<WeightName> names = encoder_names(sizes, prefix);
  for (WeightName& name : names_of(heads, prefix)) names.push_back(std::move(name));
  for (const WeightName& name : names)
    out.weights[name.ours] = taker.take(name, shapes[name.ours].sizes());
  // The embedding again, and tables that follow from the sizes.
  for (const std::string& copy :
       {std::string("cls.predictions.decoder.weight"), std::string("cls.predictions.decoder.bias"),
        prefix + "embeddings.position_ids"})
    taker.drop(copy);
  out.unused = taker.left();
  out.classes = classes_in(config, heads.classes);
  return out;
}

Written folder_files(const BertModelImpl& model, const text::WordPiece& pieces,
                     const std::vector<std::string>& classes) {
  const nn::BertOptions& o = model.encoder->options();
  const std::string architecture = architecture_of(model.heads()),
                    prefix = architecture == "BertModel" ? "" : "bert.";
  Json config = {
      {"architectures", {architecture}},  {"model_type", "bert"},
      {"vocab_size", o.vocabulary},       {"hidden_size", o.width},
      {"intermediate_size", o.hidden},    {"num_hidden_layers", o.layers},
      {"num_attention_heads", o.heads},   {"max_position_embeddings", o.context},
      {"type_vocab_size", o.segments},    {"hidden_act", activation_name(o.activation)},
      {"hidden_dropout_prob", o.dropout}, {"attention_probs_dropout_prob", o.attention_dropout},
      {"layer_norm_eps", o.epsilon},      {"initializer_range", 0.02},
      {"tie_word_embeddings", true},      {"pad_token_id", pieces.number("[PAD]")}};
  for (size_t i = 0; i < classes.size(); ++i) {
    config["id2label"][std::to_string(i)] = classes[i];
    config["label2id"][classes[i]] = i;
  }
  train::TensorFile file{.tensors = {}, .metadata = {{"format", "pt"}}};
  const auto weights = model.named_parameters();
  std::vector<WeightName> names = encoder_names(o, prefix);
  for (WeightName& name : names_of(model.heads(), prefix)) names.push_back(std::move(name));
  for (const WeightName& name : names) {
    const auto parts =
        weights[name.ours].detach().cpu().chunk(static_cast<int64_t>(name.theirs.size()));
    for (size_t i = 0; i < parts.size(); ++i) file.tensors[name.theirs[i]] = parts[i].contiguous();
  }
  const text::Normalisation& normalisation = pieces.table().normalisation;
  const Json tokenizer = {{"tokenizer_class", "BertTokenizer"},
                          {"do_lower_case", normalisation.lower_case},
                          {"strip_accents", normalisation.strip_accents},
                          {"tokenize_chinese_chars", normalisation.chinese},
                          {"model_max_length", o.context}};
  return {.files = {{"config.json", config.dump(2) + "\n"},
                    {"model.safetensors", train::tensor_bytes(file)},
                    {"tokenizer.json", text::tokenizer_bytes(pieces)},
                    {"tokenizer_config.json", tokenizer.dump(2) + "\n"},
                    {"vocab.txt", text::vocabulary_bytes(pieces)}}};
}

}  // namespace fovea::systems::bert
