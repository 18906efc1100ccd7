// The task of all translation systems: parallel text, vocabulary, batches, loss, BLEU, alignment,
// pictures. A system adds its model and its defaults.
#pragma once

#include <functional>

#include "train/answers.h"
#include "train/task.h"
#include "translate/corpus/corpus.h"
#include "translate/model.h"
#include "translate/pictures.h"

namespace fovea::translate {

struct Defaults {
  std::string generator = "reordered";  // dates, reordered, copy-reverse
  int64_t beam = 4;
  double label_smoothing = 0;
  double alpha = 0.6, coverage = 0;  // of the beam: length normalisation and coverage penalty
};
// The options of the task; a system adds its model's.
std::vector<Option> task_options(const Defaults& defaults);
// What it reads, for a registration: what is generated, in words, then the files.
std::vector<std::string> formats(const std::string& generated);

using MakeModel = std::function<std::shared_ptr<Model>(const OptionValues&, const Vocabularies&)>;
// Pictures beside the attention: a schedule, a table of positions. May be empty.
using MorePictures = std::function<std::vector<explain::Explanation>(Model&, const OptionValues&)>;
// A system's own text where no data are given. Empty: what the option "generator" names.
using Generate = std::function<Corpus(const OptionValues&, uint64_t seed)>;

class TranslationTask : public GradientTask {
 public:
  TranslationTask(std::string system, const RunOptions& run_options, MakeModel make_model,
                  MorePictures more = {}, Generate generate = {});
  ~TranslationTask() override;

  void read(const Source&) override;
  std::string read_in_words() const override { return read_; }
  void prepare() override;
  Assets assets() const override;
  void restore(const Assets&) override;
  std::shared_ptr<torch::nn::Module> build() override;
  int64_t items(Split) const override;
  std::vector<int64_t> lengths() const override;
  Loss loss(const fovea::Batch&) override;
  Metrics validate() override;
  Evaluation evaluate(Split) override;
  std::vector<uint64_t> item_keys(Split split) const override {
    return translate::keys_of(part(split).pairs);
  }
  void predict(Input, std::ostream&) override;
  size_t lines_together() const override { return kLinesTogether; }
  std::vector<explain::Explanation> explain(Input*) override;
  Written write() const override;

 protected:
  static constexpr size_t kLinesTogether = 64;
  struct Part {
    std::vector<Pair> pairs;
    std::vector<Tokens> tokens;
  };
  const Part& part(Split) const;
  const Codec& target_codec() const { return *target_codec_; }
  std::vector<nn::SearchResult> translate(const std::vector<const Encoded*>& sources,
                                          const nn::BeamOptions&);
  // The same for the best hypotheses alone, where ranks share the work.
  std::vector<nn::SearchResult> translate_together(const std::vector<const Encoded*>& sources,
                                                   const nn::BeamOptions&);
  nn::BeamOptions beam_options() const;
  // Sources with the result of the search: the lines of the input, or some of the test split.
  struct Searched {
    Pair pair;
    Encoded source;
    nn::SearchResult result;
    std::string said;
  };
  std::vector<Searched> searched(Input* input, size_t most);
  PictureContext context() const;

 private:
  void encode(Part&) const;
  std::string prepared(const std::string& line) const;
  Encoded read_source(const std::string& line) const;  // a line of a user's
  std::string text_of(const nn::Hypothesis& said, const Encoded& source,
                      const std::string& line) const;
  std::string pharaoh(const Tokens&);
  std::vector<Answered> answers(const std::vector<std::string>& lines, size_t first_number);
  void note_unknown(const Input&, const std::vector<std::string>& lines, size_t first_number) const;
  void predict_forced(const Input&, std::ostream&);
  double clarity(size_t i);
  std::vector<size_t> telling(size_t most);
  explain::Explanation length_curve();
  // Positions of sources that are searched together, those of similar length. None is empty.
  using Batches = std::vector<std::vector<int64_t>>;
  static Batches search_batches(const std::vector<const Encoded*>& sources, const nn::BeamOptions&);
  std::vector<nn::SearchResult> search(const std::vector<const Encoded*>& sources,
                                       const Batches& batches, const nn::BeamOptions&);
  // Teacher forced: summed loss and tokens; alignment links of each pair where wanted.
  struct Forced {
    double loss = 0;
    int64_t tokens = 0;
    std::vector<metrics::Links> links;
    double weights = 0, zeros = 0;  // how many weights decide the links; exact zeros
  };
  Forced forced(const Part&, bool want_links);
  std::vector<double> forced_batch(const Part&, const std::vector<int64_t>& rows, bool want_links);

  std::string system_;
  RunOptions run_options_;
  MakeModel make_model_;
  MorePictures more_;
  Generate generate_;
  Part train_, validation_, test_;
  std::string read_;  // what was read, in words
  std::shared_ptr<Codec> source_codec_, target_codec_;
  std::shared_ptr<Model> model_;
};

// For a registration: what makes the task of a system.
inline auto task_of(std::string system, MakeModel make_model, MorePictures more = {}) {
  return [=](const RunOptions& run_options) -> std::unique_ptr<Task> {
    return std::make_unique<TranslationTask>(system, run_options, make_model, more);
  };
}

}  // namespace fovea::translate
