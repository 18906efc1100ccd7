#include "systems/bert/start.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "data/files/file.h"
#include "text/wordpiece/learn.h"
#include "text/wordpiece/read.h"
#include "train/descent/fit.h"
#include "train/descent/optimiser.h"
#include "train/fields.h"
#include "train/usage_error.h"

namespace fovea::systems::bert {
namespace {

constexpr const char* kPiecesFile = "tokenizer.json";

// The heads of a run: those of the task; with --epochs 0 only those that the folder has trained.
HeadsWanted kept(const HeadsWanted& task, const HeadsWanted& folder, bool is_trained) {
  HeadsWanted out = task;
  out.pooler |= folder.pooler;
  if (!is_trained) {
    out.fill = folder.fill;
    out.next = folder.next;
    out.pooler = folder.pooler;
    out.span = folder.span;
    if (folder.classes > 0) out.classes = folder.classes;
  }
  return out;
}

}  // namespace

Start::Start(const RunOptions& run_options)
    : run_options_(run_options), options_(run_options_.options) {}

void Start::prepare(const std::vector<std::string>& lines, const HeadsWanted& heads,
                    std::vector<std::string> classes) {
  classes_ = std::move(classes);
  const std::string& path = options_.text("folder");
  if (path.empty()) {
    if (options_.flag("fresh"))
      throw UsageError("fresh: given without a folder, whose sizes and pieces it would take");
    pieces_ = text::learn_wordpiece(lines, options_.integer("vocabulary"));
    sizes_ = sizes_of(options_, pieces_->size());
    heads_ = heads;
    return;
  }
  for (const char* name : {"vocabulary", "width", "hidden", "layers", "heads", "context"})
    if (options_.is_set(name))
      throw UsageError(fmt::format("{}: given with a folder, which has its own", name));
  folder_ = read_folder(path);
  pieces_ = folder_->pieces;
  sizes_ = folder_->sizes;
  if (options_.is_set("dropout"))
    sizes_.dropout = sizes_.attention_dropout = options_.number("dropout");
  const bool is_trained = options_.integer("epochs") > 0;
  heads_ = kept(heads, folder_->heads, is_trained);
  if (!is_trained && folder_->heads.classes > 0) classes_ = folder_->classes;
}

std::string Start::in_words() const {
  if (!folder_ || folder_->unused.empty()) return "";
  return fmt::format("{}: not used: {}", options_.text("folder"), data::listed(folder_->unused));
}

Assets Start::assets() const {
  Json facts = facts_of(sizes_, heads_);
  facts["class_names"] = classes_;
  return {.facts = std::move(facts), .files = {{kPiecesFile, text::tokenizer_bytes(*pieces_)}}};
}

void Start::restore(const Assets& assets) {
  sizes_ = sizes_from(assets.facts);
  heads_ = heads_from(assets.facts);
  classes_ = train::Fields(assets.facts, "config.json: facts.").texts("class_names");
  pieces_ = text::parse_tokenizer(train::file_of(assets, kPiecesFile), kPiecesFile);
  if (pieces_->size() > sizes_.vocabulary)
    throw InvalidArgument(fmt::format("{}: {} pieces, expected at most {}, the model's vocabulary",
                                      kPiecesFile, pieces_->size(), sizes_.vocabulary));
  if (static_cast<int64_t>(classes_.size()) != heads_.classes)
    throw InvalidArgument(
        fmt::format("config.json: facts.class_names: {}, expected {}, the classes", classes_.size(),
                    heads_.classes));
}

BertModel Start::build() { return model_ = BertModel(sizes_, heads_); }

void Start::load() {
  if (!folder_ || options_.flag("fresh")) return;
  train::TensorMap all = train::weights_of(*model_);
  for (const auto& [name, weight] : folder_->weights)
    // With another number of classes the folder's classifier is of no use.
    if (const auto found = all.find(name);
        found != all.end() && found->second.sizes() == weight.sizes())
      found->second = weight;
  train::set_weights(*model_, all, options_.text("folder"));
}

std::vector<train::ParameterGroup> Start::groups(torch::nn::Module& module) const {
  train::ParameterGroup decayed, others{.weight_decay = 0};
  for (const auto& weight : module.named_parameters())
    (has_no_decay(weight.key()) ? others : decayed).parameters.push_back(weight.value());
  return {decayed, others};
}

}  // namespace fovea::systems::bert
