// Word vectors from plain text: learned, searched, drawn, and written in common file formats.
#pragma once

#include "data/formats/vocabulary.h"
#include "systems/word2vec/negative_sampling.h"
#include "systems/word2vec/view.h"
#include "text/tokens.h"
#include "train/task.h"

namespace fovea::systems::word2vec {

class Word2vecTask : public Task {
 public:
  explicit Word2vecTask(const RunOptions& run_options);

  void read(const Source&) override;
  std::string read_in_words() const override;
  void prepare() override;
  Assets assets() const override;
  void restore(const Assets&) override;
  std::shared_ptr<torch::nn::Module> build() override;
  void fit(train::Fit&) override;
  // words_per_second (of the training), analogy (share right of `analogies` whose words are known);
  // hit rate of generated text.
  Evaluation evaluate(Split) override;
  // A word: its neighbours. Three words a b c: what is to c as b is to a.
  void predict(Input, std::ostream&) override;
  std::vector<explain::Explanation> explain(Input*) override;
  Written write() const override;

 private:
  struct Near {
    int64_t id;
    double cosine;
  };
  // Nearest by cosine, without those in `without`; of equal ones the lower id.
  std::vector<Near> nearest(const at::Tensor& direction, int64_t count,
                            const std::vector<int64_t>& without) const;
  // The same as words, as many as are shown.
  std::vector<Neighbour> neighbours(const at::Tensor& direction,
                                    const std::vector<int64_t>& without) const;
  at::Tensor unit(int64_t id) const { return units_[id]; }
  int64_t known(const std::string& word, const std::string& name, size_t line) const;
  void refresh();

  const RunOptions run_options_;
  std::unique_ptr<text::Tokeniser> tokeniser_;
  std::string path_;  // of the text, for messages
  std::vector<text::Words> sentences_;
  std::vector<std::vector<std::string>>
      slots_;  // of generated text: words of one slot should be neighbours
  data::Vocabulary vocabulary_;
  std::vector<int64_t> counts_;
  double words_per_second_ = 0;
  std::vector<double> losses_;
  std::shared_ptr<torch::nn::Module> model_;
  at::Tensor input_, output_, units_;  // [vocabulary, width]; units_ are input_'s rows of length 1
};

}  // namespace fovea::systems::word2vec
