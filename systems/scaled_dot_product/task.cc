#include "systems/scaled_dot_product/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

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
  using ClassificationTask::ClassificationTask;

  void read(const Source& source) override {
    data::Random random(source.seed);
    sentences_.clear();
    labels_.clear();
    lengths_.clear();
    if (source.path.empty())
      for (int64_t i = 0; i < run_options_.options.integer("sentences"); ++i)
        sentences_.push_back(draw(random));
    else
      sentences_ = read_sentences(source.path);
    data::SplitRequest request = split_request(source);
    request.test = 0.2;
    for (const Sentence& sentence : sentences_) {
      labels_.push_back(sentence.animal);
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
    return model_ =
               std::make_shared<Model>(vocabulary_.size(), run_options_.options.integer("width"),
                                       run_options_.options.integer("key_width"));
  }

  torch::Tensor logits(std::span<const int64_t> items) override {
    const data::Packed words = packed(items);
    return model_->out(model_->mixed(model_->embedding(words.values), words.offsets)
                           .index_select(0, askers(words.offsets, items)));
  }

  std::vector<int> hits(std::span<const int64_t> items) override {
    std::vector<int> out;
    for (const int64_t item : items) {
      const Sentence& sentence = sentences_[static_cast<size_t>(item)];
      const torch::Tensor x = embedded(sentence.words);
      const torch::Tensor top =
          weights(
              four(model_->q_proj(x)), four(model_->k_proj(x)), {},
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
          fmt::format("{}\t{}\n", answer(sentence.animal), fmt::join(sentence.words, " "));
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
      const Sentence sentence = parsed(text, input.name, line);
      const torch::Tensor x = embedded(sentence.words);
      const torch::Tensor offsets =
          torch::tensor({int64_t{0}, x.size(0)}, torch::kInt32).to(x.device());
      const torch::Tensor p = model_->out(model_->mixed(x, offsets)[sentence.asks]).softmax(0);
      return {
          fmt::format("{}\t{:.4f}\n", answer(p.argmax().item<int64_t>()), p.max().item<double>()),
          [p] {
            std::vector<std::string> names;
            for (int64_t i = 0; i < p.numel(); ++i) names.push_back(answer(i));
            return class_fields(names, to_floats(p));
          }};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    Sentence sentence =
        parsed("the animal did not cross the street because it was too tired", "example", 1);
    if (input) {
      std::string line;
      data::LineReader(input->stream, input->name).next(line);
      data::visit_line(line, input->name, 1, [&](size_t number, std::string_view text) {
        sentence = parsed(text, input->name, number);
      });
    }
    std::vector<explain::Explanation> out{picture(*model_, sentence, embedded(sentence.words))};
    if (!input) out.push_back(thinking_machines());
    return out;
  }

 private:
  torch::Tensor embedded(const std::vector<std::string>& words) const {
    return model_->embedding(
        torch::tensor(vocabulary_.ids(words), torch::kInt64).to(run_options_.device));
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
  std::vector<Sentence> sentences_;
  data::Vocabulary vocabulary_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_scaled_dot_product(const RunOptions& run_options) {
  return std::make_unique<ScaledDotProduct>(run_options);
}

}  // namespace fovea::systems::scaled_dot_product
