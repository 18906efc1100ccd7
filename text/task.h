// The task of all text classifiers: documents, vocabulary, word vectors, batches, metrics, the words
// with the largest effect, heat maps. A system adds its model and its defaults.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "data/formats/vocabulary.h"
#include "text/corpus.h"
#include "text/embedding.h"
#include "text/model.h"
#include "text/pictures.h"
#include "text/tokens.h"
#include "train/classification_task.h"

namespace fovea::text {

// What a model reads: one sequence of words, or sentences of words.
enum class Level { kWords, kSentences };

struct Defaults {
  Level level = Level::kWords;
  int64_t width = 50, min_count = 1;
  double dropout = 0, word_dropout = 0;
};
// The options of the task; a system adds its generators and its model's.
std::vector<Option> task_options(const Defaults& defaults);

// What is known when the model is made.
struct Known {
  EmbeddingOptions embedding;
  int64_t classes = 2;
  int64_t aspects = 0;  // of the aspects' own vocabulary, with PAD (none) and UNK
};

class TextTask;
struct Parts {
  Level level = Level::kWords;
  bool aspects = false;  // a document is asked about one aspect of it
  std::map<std::string, std::function<Corpus(uint64_t seed)>> generators =
      {};  // option "generator" chooses among several
  std::function<std::shared_ptr<Model>(const OptionValues&, const Known&)> model = {};
  // The table of word vectors in the model.
  std::function<Embedding(Model&)> embedding = {};
  // Called once before training with the number of training documents each word occurs in, and of
  // all; may be empty.
  std::function<void(Model&, const at::Tensor& documents, int64_t total)> begin = {};
  // Pictures beside the heat maps; may be empty.
  std::function<std::vector<explain::Explanation>(TextTask&)> more = {};
};

class TextTask : public ClassificationTask {
 public:
  TextTask(const RunOptions& run_options, Parts parts);

  void read(const Source&) override;
  std::string read_in_words() const override { return in_words(corpus_); }
  void prepare() override;
  Assets assets() const override;
  void restore(const Assets&) override;
  std::shared_ptr<torch::nn::Module> build() override;
  Loss loss(const fovea::Batch&) override;
  Evaluation evaluate(Split) override;
  std::vector<uint64_t> item_keys(Split) const override;
  std::vector<train::ParameterGroup> parameter_groups(torch::nn::Module&) const override;
  // A line of text, tabs between sentences; with aspects `aspect<TAB>text`. Answers: label,
  // probability, the words that carried it and those never seen in training, `(unknown)` beside these.
  void predict(Input, std::ostream&) override;
  size_t lines_together() const override { return kLinesTogether; }
  std::vector<explain::Explanation> explain(Input*) override;
  Written write() const override;

  // For a system's own pictures.
  Model& model() { return *model_; }
  Embedding embedding() { return parts_.embedding(*model_); }
  const data::Vocabulary& vocabulary() const { return vocabulary_; }
  const std::vector<std::string>& class_names() const { return names_; }
  const OptionValues& options() const { return run_options_.options; }
  // Whether the documents are a user's: pictures then show no others.
  bool own_data() const { return !corpus_.path.empty(); }
  explain::Explanation picture(Document document, const std::string& title);

 protected:
  torch::Tensor logits(std::span<const int64_t> items) override;
  std::vector<int> hits(std::span<const int64_t> items) override;
  std::vector<double> counted() const override { return {mixed_right_, mixed_seen_}; }
  void set_counted(const std::vector<double>& counts) override {
    mixed_right_ = counts[0];
    mixed_seen_ = counts[1];
  }

 private:
  static constexpr size_t kLinesTogether = 64;  // are answered in one batch
  struct Encoded {
    std::vector<int32_t> ids, lengths;  // of all words; of each sentence
    int64_t aspect = 0;
  };
  std::vector<Words> sentences_of(const Document&) const;
  Encoded encode(const Document&) const;
  void encode_all();
  at::Tensor document_counts() const;  // of the training split: int64 [vocabulary]
  Batch batch(const std::vector<const Encoded*>&) const;
  Document parse(std::string_view line, const std::string& name, size_t number) const;
  // Places in the test split: those answered wrongly first, the surest first among them, then those
  // answered rightly.
  std::vector<size_t> mistakes_first();
  std::string carried(const std::vector<Words>&, std::span<const float> of_word,
                      std::span<const float> of_sentence) const;
  bool is_unknown(const std::string& word) const;  // never seen in training
  // Answers some lines, the first of which has this number; the model is asked once for all of them.
  void answer(const Input&, std::span<const std::string> lines, size_t number, std::ostream&);

  Parts parts_;
  Corpus corpus_;
  bool hidden_ = false;  // its documents are composed: text/compose.h
  std::vector<Encoded> encoded_;
  std::vector<std::string> names_;  // of the classes
  std::shared_ptr<Tokeniser> tokeniser_;
  data::Vocabulary vocabulary_, aspects_;
  std::optional<Vectors> vectors_;
  bool learning_ = false;  // prepare was called: this run trains
  int64_t width_ = 0;
  std::shared_ptr<Model> model_;
  // What evaluate gathers while logits() answers its batches: where the last batch looked, and how
  // many mixed documents were right.
  Want want_ = Want::kLogits;
  Look look_;
  at::Tensor penalty_;  // of the last batch in training
  double mixed_right_ = 0, mixed_seen_ = 0;
};

}  // namespace fovea::text
