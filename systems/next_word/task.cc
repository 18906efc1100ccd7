#include "systems/next_word/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <cmath>
#include <istream>

#include "data/batches.h"
#include "data/files/file.h"
#include "data/formats/text.h"
#include "systems/next_word/blank.h"
#include "systems/next_word/continuation.h"
#include "systems/next_word/documents.h"
#include "systems/next_word/folder.h"
#include "systems/next_word/model.h"
#include "systems/next_word/sentences.h"
#include "systems/next_word/tokens.h"
#include "systems/next_word/view.h"
#include "train/descent/finite.h"
#include "train/descent/fit.h"
#include "train/descent/recipe.h"
#include "train/exports.h"
#include "train/fields.h"
#include "train/interrupt.h"

namespace fovea::systems::next_word {
namespace {

constexpr int64_t kIgnored = -100;  // cross_entropy leaves such targets out
constexpr const char* kTokensFile = "tokens";

class NextWord : public GradientTask, public Exports {
 public:
  explicit NextWord(const RunOptions& run_options)
      : run_options_(run_options), options_(run_options_.options) {}

  void read(const Source& source) override {
    for (auto& windows : windows_) windows.clear();
    if (!source.path.empty()) {
      const bool lines_are_documents = options_.text("document") == "line";
      // A run that is opened has its tokens; a training reads them first.
      if (!tokens_) read_foreign_tokens();
      documents_ = read_documents(source, lines_are_documents ? Unit::kLine : Unit::kFile,
                                  tokens_ ? tokens_->line_end() : " ");
      return;
    }
    documents_ = draw_documents(source, options_.integer("sentences"));
  }
  std::string read_in_words() const override {
    return fmt::format("{} documents: {} for training, {} for validation, {} for test",
                       documents_.texts.size(), items_of(Split::kTrain).size(),
                       items_of(Split::kValidation).size(), items_of(Split::kTest).size());
  }
  void prepare() override;
  Assets assets() const override {
    return {.facts = facts_of(sizes_), .files = {{kTokensFile, tokens_->bytes()}}};
  }
  void restore(const Assets& assets) override {
    sizes_ = sizes_from(assets.facts);
    tokens_ = tokens_from_bytes(train::file_of(assets, kTokensFile), kTokensFile);
    if (tokens_->size() != sizes_.vocabulary)
      throw InvalidArgument(fmt::format("{}: {} tokens, expected {}, the model's vocabulary",
                                        kTokensFile, tokens_->size(), sizes_.vocabulary));
  }
  std::shared_ptr<torch::nn::Module> build() override {
    model_ = nn::LanguageModel(sizes_);
    return model_.ptr();
  }
  void fit(train::Fit& fit) override {
    if (!checkpoint_.arrays.empty())
      train::set_weights(*model_, weights_of(checkpoint_), options_.text("checkpoint"));
    GradientTask::fit(fit);
  }

  int64_t items(Split split) const override { return static_cast<int64_t>(windows(split).size()); }
  std::vector<int64_t> lengths() const override {
    std::vector<int64_t> out;
    for (const Window& window : windows(Split::kTrain))
      out.push_back(static_cast<int64_t>(window.inputs.size()));
    return out;
  }
  std::vector<uint64_t> item_keys(Split split) const override {
    return documents_.splits.keys_of(split);
  }
  Loss loss(const Batch& batch) override {
    const Read read = read_windows(windows(Split::kTrain), batch.items);
    return {torch::nn::functional::cross_entropy(
                model_(read.inputs).flatten(0, 1), read.targets.flatten(),
                torch::nn::functional::CrossEntropyFuncOptions().ignore_index(kIgnored)),
            read.count};
  }
  Evaluation evaluate(Split) override;
  void predict(Input input, std::ostream& out) override {
    continue_lines(model_, *tokens_, options_, input, out);
  }
  size_t lines_together() const override { return 1; }
  std::vector<explain::Explanation> explain(Input*) override;
  Written write() const override { return written(documents_); }
  Written exported() const override { return folder_files(*model_, *tokens_); }

 private:
  struct Read {
    torch::Tensor inputs, targets;  // [B, L]
    int64_t count = 0;              // targets
  };
  void read_foreign_tokens();
  const std::vector<int64_t>& items_of(Split split) const { return documents_.splits.of(split); }
  const std::vector<Window>& windows(Split) const;
  Read read_windows(const std::vector<Window>& from, std::span<const int64_t> items) const;
  bool hit_is_known() const {
    return options_.text("checkpoint").empty() && options_.text("tokens") == "words";
  }
  Shown shown(std::string_view text, Input* input);

  const RunOptions run_options_;
  const OptionValues& options_;
  Documents documents_;
  data::Llama2c checkpoint_;
  std::unique_ptr<Tokens> tokens_;
  nn::LanguageModelOptions sizes_;
  nn::LanguageModel model_{nullptr};
  mutable std::vector<Window> windows_[3];  // by split, made at the first use
};

void NextWord::read_foreign_tokens() {
  const std::string& path = options_.text("tokenizer");
  if (!path.empty()) tokens_ = tokens_of(data::parse_llama2c_tokens(data::read_file(path), path));
}

void NextWord::prepare() {
  const std::string &checkpoint = options_.text("checkpoint"),
                    &tokenizer = options_.text("tokenizer");
  if (checkpoint.empty() != tokenizer.empty())
    throw UsageError(fmt::format("{}: missing, expected together with {}",
                                 checkpoint.empty() ? "checkpoint" : "tokenizer",
                                 checkpoint.empty() ? "tokenizer" : "checkpoint"));
  if (!checkpoint.empty()) {
    for (const char* name : {"width", "hidden", "layers", "heads", "key_heads", "context", "norm",
                             "positions", "tie", "tokens", "vocabulary"})
      if (options_.is_set(name))
        throw UsageError(fmt::format("{}: given with a checkpoint, which has its own", name));
    read_foreign_tokens();
    checkpoint_ = data::parse_llama2c(data::read_file(checkpoint), checkpoint);
    sizes_ = sizes_of(checkpoint_);
    sizes_.dropout = options_.number("dropout");
    if (tokens_->size() != sizes_.vocabulary)
      throw data::FileError(tokenizer, 0,
                            fmt::format("{} tokens, expected {}, the checkpoint's vocabulary",
                                        tokens_->size(), sizes_.vocabulary));
    return;
  }
  std::vector<std::string> lines;
  for (const int64_t item : items_of(Split::kTrain))
    lines.push_back(documents_.texts[static_cast<size_t>(item)]);
  tokens_ = tokens_of(
      translate::learn_codec(lines, {.kind = translate::codec_kind(options_.text("tokens")),
                                     .size = options_.integer("vocabulary"),
                                     .min_count = options_.integer("min_count")}));
  sizes_ = sizes_of(options_, tokens_->size());
}

const std::vector<Window>& NextWord::windows(Split split) const {
  std::vector<Window>& out = windows_[static_cast<size_t>(split)];
  if (!out.empty()) return out;
  for (const int64_t item : items_of(split)) {
    std::vector<int64_t> ids = ids_of(*tokens_, documents_.texts[static_cast<size_t>(item)]);
    ids.push_back(tokens_->end());
    for (Window& window : windows_of(ids, sizes_.context)) out.push_back(std::move(window));
  }
  return out;
}

NextWord::Read NextWord::read_windows(const std::vector<Window>& from,
                                      std::span<const int64_t> items) const {
  size_t longest = 1;
  for (const int64_t i : items)
    longest = std::max(longest, from[static_cast<size_t>(i)].inputs.size());
  const auto rows = static_cast<int64_t>(items.size()), width = static_cast<int64_t>(longest);
  Read out{torch::full({rows, width}, tokens_->end(), torch::kLong),
           torch::full({rows, width}, kIgnored, torch::kLong)};
  for (int64_t b = 0; b < rows; ++b) {
    const Window& window = from[static_cast<size_t>(items[static_cast<size_t>(b)])];
    std::copy(window.inputs.begin(), window.inputs.end(),
              out.inputs.data_ptr<int64_t>() + b * width);
    std::copy(window.targets.begin(), window.targets.end(),
              out.targets.data_ptr<int64_t>() + b * width);
    out.count += static_cast<int64_t>(window.targets.size());
  }
  out.inputs = out.inputs.to(run_options_.device);
  out.targets = out.targets.to(run_options_.device);
  return out;
}

Evaluation NextWord::evaluate(Split split) {
  const torch::NoGradGuard no_grad;
  const std::vector<Window>& all = windows(split);
  double loss = 0, right = 0, count = 0, last_right = 0, last_count = 0;
  std::vector<int64_t> lengths;
  for (const Window& window : all) lengths.push_back(static_cast<int64_t>(window.inputs.size()));
  const train::Recipe recipe = train::recipe_of(options_);
  for (const auto& items :
       data::ordered_batches(static_cast<int64_t>(all.size()), lengths,
                             {.items = 4 * recipe.batch, .tokens = 4 * recipe.batch_tokens})) {
    train::stop_if_interrupted("while judging");
    const Read read = read_windows(all, items);
    const torch::Tensor scores = train::finite(model_(read.inputs), "logits");
    loss += torch::nn::functional::cross_entropy(
                scores.flatten(0, 1).to(torch::kDouble), read.targets.flatten(),
                torch::nn::functional::CrossEntropyFuncOptions().ignore_index(kIgnored).reduction(
                    torch::kSum))
                .item<double>();
    const torch::Tensor hits = scores.argmax(-1).eq(read.targets).cpu();
    right += hits.sum().item<double>();
    count += static_cast<double>(read.count);
    for (size_t b = 0; b < items.size(); ++b) {
      const Window& window = all[static_cast<size_t>(items[b])];
      const auto length = static_cast<int64_t>(window.targets.size());
      // The word before the end.
      if (length < 2 || window.targets.back() != tokens_->end()) continue;
      last_right += hits[static_cast<int64_t>(b)][length - 2].item<bool>();
      ++last_count;
    }
  }
  Evaluation out;
  out.items = static_cast<int64_t>(items_of(split).size());
  out.metrics = {
      {"loss", loss / count}, {"perplexity", std::exp(loss / count)}, {"accuracy", right / count}};
  if (last_count > 0) out.metrics["last_word"] = last_right / last_count;
  if (hit_is_known())
    Blank(model_, *tokens_, run_options_.seed).judge_attention(documents_, split, out);
  return out;
}

Shown NextWord::shown(std::string_view text, Input* input) {
  std::vector<int64_t> ids = ids_of(*tokens_, text);
  if (static_cast<int64_t>(ids.size()) > sizes_.context) {
    const int64_t beyond = static_cast<int64_t>(ids.size()) - sizes_.context;
    ids.erase(ids.begin(), ids.begin() + beyond);
    if (input != nullptr && input->noted)
      input->noted(
          fmt::format("{}: longer than the context of {} tokens; the first {} are not seen",
                      input->name, sizes_.context, beyond));
  }
  Shown out;
  for (const int64_t id : ids) out.tokens.push_back(tokens_->piece(id));
  const torch::Tensor tokens =
      torch::tensor(ids, torch::kLong).unsqueeze(0).to(run_options_.device);
  out.weights = model_->weights(tokens).select(1, 0).cpu();
  out.layers = model_->after_each_layer(tokens).select(1, 0).select(1, -1).cpu();
  for (int64_t id = 0; id < tokens_->size(); ++id) out.pieces.push_back(tokens_->piece(id));
  if (hit_is_known())
    if (const Sentence sentence = sentence_of(data::words(text)); sentence.decides >= 0)
      out.decides = sentence.decides + 1;
  if (out.decides >= static_cast<int64_t>(ids.size())) out.decides = -1;
  out.scale = fmt::format("1/√{}", sizes_.width / sizes_.heads);
  return out;
}

std::vector<explain::Explanation> NextWord::explain(Input* input) {
  const torch::NoGradGuard no_grad;
  std::vector<explain::Explanation> all;
  const auto show = [&](std::string_view text) {
    for (explain::Explanation& picture : pictures(shown(text, input)))
      all.push_back(std::move(picture));
  };
  if (input != nullptr) {
    data::each_line(input->stream, input->name, [&](size_t, std::string_view line) {
      if (!data::trimmed(line).empty()) show(line);
    });
    return all;
  }
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < items_of(Split::kTest).size() && i < kShown; ++i) {
    std::vector<std::string> words =
        data::words(documents_.texts[static_cast<size_t>(items_of(Split::kTest)[i])]);
    if (words.size() > 1) words.pop_back();
    show(fmt::format("{}", fmt::join(words, " ")));
  }
  if (all.empty()) show("she waited for the");
  return all;
}

}  // namespace

std::unique_ptr<Task> make_next_word(const RunOptions& run_options) {
  return std::make_unique<NextWord>(run_options);
}

}  // namespace fovea::systems::next_word
