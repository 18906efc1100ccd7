#include "systems/scaled_dot_product/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <array>

#include "data/files/file.h"
#include "data/files/lines.h"
#include "data/formats/vocabulary.h"
#include "data/packed.h"
#include "data/random.h"
#include "fovea/attend.h"
#include "systems/scaled_dot_product/model.h"
#include "systems/scaled_dot_product/sentences.h"
#include "systems/scaled_dot_product/six_steps.h"
#include "systems/scaled_dot_product/view.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"

namespace fovea::systems::scaled_dot_product {
namespace {

class ScaledDotProduct : public ClassificationTask {
 public:
  explicit ScaledDotProduct(const RunOptions& run_options)
      : ClassificationTask(run_options),
        meaning_(meaning_of(run_options.options.text("meaning"))) {}

  std::string read_in_words() const override {
    return fmt::format("{} sentences", sentences_.size());
  }
  void read(const Source& source) override {
    data::Random random(source.seed);
    sentences_.clear();
    labels_.clear();
    lengths_.clear();
    if (source.path.empty())
      for (int64_t i = 0; i < run_options_.options.integer("sentences"); ++i)
        sentences_.push_back(draw(meaning_, random));
    else
      sentences_ = read_sentences(meaning_, source.path);
    data::SplitRequest request = split_request(source);
    request.test = 0.2;
    for (const Sentence& sentence : sentences_) {
      labels_.push_back(sentence.answer);
      lengths_.push_back(static_cast<int64_t>(sentence.words.size()));
      request.keys.push_back(data::item_key(fmt::format("{}", fmt::join(sentence.words, " "))));
    }
    splits_ = data::split(static_cast<int64_t>(sentences_.size()), request);
  }
  void prepare() override {
    std::vector<std::vector<std::string>> known;
    for (const int64_t item : splits_.train)
      known.push_back(sentences_[static_cast<size_t>(item)].words);
    vocabulary_ = data::Vocabulary::of(known, {});
  }
  Assets assets() const override {
    return {.facts = Json::object(), .files = {{"vocabulary", vocabulary_.text()}}};
  }
  void restore(const Assets& assets) override {
    vocabulary_ = data::Vocabulary::parse(train::file_of(assets, "vocabulary"), "vocabulary");
  }
  std::shared_ptr<torch::nn::Module> build() override {
    const bool context = meaning_ == Meaning::kContext;
    return model_ = std::make_shared<Model>(
               ModelConfig{.vocabulary = vocabulary_.size(),
                           .width = run_options_.options.integer("width"),
                           .key_width = run_options_.options.integer("key_width"),
                           .answers = static_cast<int64_t>(answers(meaning_).size()),
                           .context = context,
                           .positions = context && run_options_.options.flag("positions")});
  }

  torch::Tensor logits(std::span<const int64_t> items) override {
    const data::Packed words = packed(items);
    return model_->out(mixed(words).index_select(0, askers(words.offsets, items)));
  }

  std::vector<int> hits(std::span<const int64_t> items) override {
    std::vector<int> out;
    for (const int64_t item : items) {
      const Sentence& sentence = sentences_[static_cast<size_t>(item)];
      const data::Packed words = alone(sentence);
      const torch::Tensor x = vectors(words), asking = model_->asking(x, words.offsets);
      const torch::Tensor top =
          weights(
              four(model_->q_proj(asking)), four(model_->k_proj(x)), {},
              {.rows = torch::tensor({sentence.asks}, torch::kInt32).to(x.device()), .top_k = 1})
              .indices;
      out.push_back(sentence.meant < 0 ? -1 : top.item<int64_t>() == sentence.meant);
    }
    return out;
  }

  Written write() const override {
    Written out{.data = "sentences.tsv",
                .truth = "truth.jsonl, where \"it\" stands and whom it means"};
    for (const Sentence& sentence : sentences_) {
      out.files["sentences.tsv"] +=
          fmt::format("{}\t{}\n", answer(sentence.answer), fmt::join(sentence.words, " "));
      out.files["truth.jsonl"] +=
          Json{{"query", sentence.asks},
               {"key", sentence.meant < 0 ? Json(nullptr) : Json(sentence.meant)}}
              .dump() +
          "\n";
    }
    return out;
  }

  // A line is a sentence with the word "it".
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t line, std::string_view text) -> Answered {
      const Sentence sentence = parsed(meaning_, text, input.name, line);
      const torch::Tensor p = probabilities(sentence);
      return {
          fmt::format("{}\t{:.4f}\n", answer(p.argmax().item<int64_t>()), p.max().item<double>()),
          [this, p] { return class_fields(answers(meaning_), to_floats(p)); }};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<std::string> lines = {
        "the animal did not cross the street because it was too tired"};
    if (meaning_ == Meaning::kContext)
      lines.emplace_back("the animal did not cross the street because it was too wide");
    if (input) {
      lines.resize(1);
      std::string line;
      data::LineReader(input->stream, input->name).next(line);
      data::visit_line(line, input->name, 1,
                       [&](size_t, std::string_view text) { lines[0] = text; });
    }
    std::vector<explain::Explanation> out;
    for (const std::string& line : lines) {
      const Sentence sentence = parsed(meaning_, line, input ? input->name : "example", 1);
      const data::Packed words = alone(sentence);
      const torch::Tensor x = vectors(words);
      out.push_back(picture(*model_, sentence, model_->asking(x, words.offsets), x));
      out.back().outcome = outcome(sentence);
      // The last words tell the pictures apart.
      if (lines.size() > 1) out.back().title += fmt::format(" … too {}", sentence.words.back());
    }
    if (!input) out.push_back(thinking_machines());
    return out;
  }

 private:
  const std::string& answer(int64_t number) const {
    return answers(meaning_)[static_cast<size_t>(number)];
  }
  torch::Tensor probabilities(const Sentence& sentence) const {
    const data::Packed words = alone(sentence);
    return model_->out(mixed(words)[sentence.asks]).softmax(0);
  }
  // Right or wrong is said where the rules of the generated sentences tell whom "it" means.
  std::string outcome(const Sentence& sentence) const {
    const torch::Tensor p = probabilities(sentence);
    const int64_t best = p.argmax().item<int64_t>();
    const std::string said = fmt::format("{}, p = {:.2f}", answer(best), p.max().item<double>());
    if (sentence.meant < 0) return said;
    return best == sentence.answer
               ? "right: " + said
               : fmt::format("wrong: {} (right: {})", said, answer(sentence.answer));
  }
  // [total, width]: what the words have read.
  torch::Tensor mixed(const data::Packed& words) const {
    const torch::Tensor x = vectors(words);
    return model_->mixed(model_->asking(x, words.offsets), x, words.offsets);
  }
  // [total, width]: the words' own vectors.
  torch::Tensor vectors(const data::Packed& words) const {
    const torch::Tensor starts = words.offsets.to(torch::kInt64);
    const torch::Tensor sizes = starts.slice(0, 1) - starts.slice(0, 0, -1);
    const torch::Tensor places = torch::arange(words.values.size(0), starts.options()) -
                                 starts.slice(0, 0, -1).repeat_interleave(sizes);
    return model_->vectors(words.values, places);
  }
  data::Packed alone(const Sentence& sentence) const {
    return data::pack_tokens({vocabulary_.ids(sentence.words)}, std::array<int64_t, 1>{0})
        .to(run_options_.device);
  }
  data::Packed packed(std::span<const int64_t> items) const {
    std::vector<std::vector<int64_t>> rows;
    std::vector<int64_t> all;
    for (const int64_t item : items) {
      all.push_back(static_cast<int64_t>(rows.size()));
      rows.push_back(vocabulary_.ids(sentences_[static_cast<size_t>(item)].words));
    }
    return data::pack_tokens(rows, all).to(run_options_.device);
  }
  // The positions of "it" in the packed batch.
  torch::Tensor askers(const torch::Tensor& offsets, std::span<const int64_t> items) const {
    std::vector<int64_t> asks;
    for (const int64_t item : items) asks.push_back(sentences_[static_cast<size_t>(item)].asks);
    return offsets.slice(0, 0, -1).to(torch::kInt64) +
           torch::tensor(asks, torch::kInt64).to(offsets.device());
  }
  const Meaning meaning_;
  std::vector<Sentence> sentences_;
  data::Vocabulary vocabulary_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_scaled_dot_product(const RunOptions& run_options) {
  return std::make_unique<ScaledDotProduct>(run_options);
}

}  // namespace fovea::systems::scaled_dot_product
