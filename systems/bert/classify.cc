// Fine-tuning on classes: tanh(W h) of the first state, and a linear layer on it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <limits>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/random.h"
#include "systems/bert/documents.h"
#include "systems/bert/start.h"
#include "systems/bert/tasks.h"
#include "systems/bert/view.h"
#include "text/corpus.h"
#include "train/classification_task.h"
#include "train/descent/finite.h"
#include "train/descent/fit.h"
#include "train/descent/optimiser.h"
#include "train/descent/recipe.h"

namespace fovea::systems::bert {
namespace {

// Generated text: which trade is it about? The trade is not named.
text::Corpus generate_classes(const Source& source, int64_t count) {
  text::Corpus out;
  data::SplitRequest request = split_request(source);
  data::Random random(data::mix(source.seed, 282));
  for (int64_t i = 0; i < count; ++i) {
    const size_t trade = random.below(trades().size());
    Sentences said = draw_document(data::mix(source.seed, static_cast<uint64_t>(i) + 5000), trade);
    said.erase(said.begin());
    said.resize(1 + random.below(2));
    text::Document document{.label = trades()[trade].name};
    document.texts = {fmt::format("{}", fmt::join(said, " "))};
    request.keys.push_back(data::item_key(document.texts[0]));
    request.classes.push_back(static_cast<int64_t>(trade));
    out.documents.push_back(std::move(document));
  }
  out.splits = data::split(count, request);
  return out;
}

class Classification : public BertTask<ClassificationTask> {
 public:
  explicit Classification(const RunOptions& run_options) : BertTask(run_options, run_options) {}

  void read(const Source& source) override {
    corpus_ = source.path.empty()
                  ? generate_classes(source, run_options_.options.integer("documents"))
                  : text::read_corpus({.source = source,
                                       .positive_above = std::numeric_limits<double>::quiet_NaN()});
    splits_ = corpus_.splits;
    if (!names_.empty()) encode();  // a run that is opened has its classes and pieces
  }
  std::string read_in_words() const override { return text::in_words(corpus_); }
  void prepare() override {
    text::check_labels(corpus_);
    std::vector<std::string> lines, labels;
    for (const int64_t item : splits_.train) {
      lines.push_back(text_of(item));
      labels.push_back(corpus_.documents[static_cast<size_t>(item)].label);
    }
    names_ = data::classes_of(labels).names;
    start_.prepare(lines, {.pooler = true, .classes = static_cast<int64_t>(names_.size())}, names_);
    names_ = start_.classes();
    encode();
  }
  void restore(const Assets& assets) override {
    BertTask::restore(assets);
    names_ = start_.classes();
  }

  void predict(Input input, std::ostream& out) override {
    const Sequences sequences = start_.sequences();
    const OptionValues& options = run_options_.options;
    for (const char* other : {"fill", "span"})
      if (is_asked(options, other, "class"))
        throw UsageError(fmt::format(
            "answer: {}, expected class, embed or states: this run has learned classes", other));
    answer_in_batches(input, out,
                      {.at_once = static_cast<size_t>(train::recipe_of(options).batch),
                       .read = [&](std::string_view line) { return sequences.line(line); },
                       .answers =
                           [&](const std::vector<const Sequence*>& some) {
                             auto common = common_lines(start_, options, some, "class");
                             return common ? *std::move(common) : named_lines(some);
                           }});
  }
  std::vector<explain::Explanation> explain(Input* input) override;
  Written write() const override {
    Written out{.data = "texts.tsv"};
    for (size_t i = 0; i < corpus_.documents.size(); ++i)
      out.files["texts.tsv"] +=
          fmt::format("{}\t{}\n", corpus_.documents[i].label, text_of(static_cast<int64_t>(i)));
    return out;
  }

 protected:
  torch::Tensor logits(std::span<const int64_t> items) override {
    std::vector<const Sequence*> some;
    for (const int64_t item : items) some.push_back(&sequences_[static_cast<size_t>(item)]);
    return scores(some);
  }

 private:
  std::string text_of(int64_t item) const {
    return fmt::format("{}", fmt::join(corpus_.documents[static_cast<size_t>(item)].texts, " "));
  }
  void encode() {
    const Sequences sequences = start_.sequences();
    sequences_.clear(), labels_.clear(), lengths_.clear();
    for (size_t i = 0; i < corpus_.documents.size(); ++i) {
      const text::Document& document = corpus_.documents[i];
      const auto found = std::find(names_.begin(), names_.end(), document.label);
      if (found == names_.end())
        throw data::FileError(corpus_.path.empty() ? "generated" : corpus_.path, document.line,
                              fmt::format("class {}, expected one of the training: {}",
                                          data::shown(document.label), data::listed(names_)));
      labels_.push_back(found - names_.begin());
      sequences_.push_back(sequences.one(start_.pieces().encode(text_of(static_cast<int64_t>(i)))));
      lengths_.push_back(static_cast<int64_t>(sequences_.back().ids.size()));
    }
  }
  torch::Tensor scores(const std::vector<const Sequence*>& some) {
    const nn::BertInput input = packed(some, start_.device());
    BertModel& model = start_.model();
    return model->classifier(model->pooled(model->encoder(input), input.offsets));
  }
  std::vector<std::string> named_lines(const std::vector<const Sequence*>& some) {
    const torch::Tensor p = train::finite(scores(some), "logits").softmax(1).cpu();
    std::vector<std::string> out;
    for (int64_t i = 0; i < p.size(0); ++i)
      out.push_back(fmt::format(
          "{}\t{:.4f}", data::visible(names_[static_cast<size_t>(p[i].argmax().item<int64_t>())]),
          p[i].max().item<double>()));
    return out;
  }

  text::Corpus corpus_;
  std::vector<std::string> names_;
  std::vector<Sequence> sequences_;
};

std::vector<explain::Explanation> Classification::explain(Input* input) {
  const torch::NoGradGuard no_grad;
  const Sequences sequences = start_.sequences();
  std::vector<explain::Explanation> all;
  const auto show = [&](std::string_view text, const std::string& title, const std::string& truth) {
    const Sequence sequence = sequences.line(text);
    std::string outcome = named_lines({&sequence})[0];
    std::replace(outcome.begin(), outcome.end(), '\t', ' ');
    if (!truth.empty()) outcome += fmt::format(" (true: {})", truth);
    all.push_back(head_maps(start_, sequence, title, outcome));
  };
  if (input != nullptr) {
    data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
      if (!data::trimmed(line).empty()) show(line, fmt::format("Line {}", number), "");
    });
    if (all.empty()) throw data::FileError(input->name, 0, "no lines, expected at least one");
    return all;
  }
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(kShown, splits_.test.size()); ++i) {
    const int64_t item = splits_.test[i * splits_.test.size() / kShown];
    show(text_of(item), fmt::format("Test text {}", i + 1),
         corpus_.documents[static_cast<size_t>(item)].label);
  }
  if (all.empty()) show("she works in the bakery .", "Example", "");
  return all;
}

}  // namespace

std::unique_ptr<Task> make_classification(const RunOptions& run_options) {
  return std::make_unique<Classification>(run_options);
}

}  // namespace fovea::systems::bert
