// Word alignment: trains on parallel text, in one direction or both; links words; compares the
// links with gold ones.
#pragma once

#include "systems/alignment/aligner.h"
#include "train/task.h"
#include "translate/corpus/corpus.h"

namespace fovea::systems {

class AlignmentTask : public GradientTask {
 public:
  explicit AlignmentTask(const RunOptions& run_options) : run_options_(run_options) {}

  void read(const Source&) override;
  std::string read_in_words() const override { return read_; }
  void prepare() override;
  Assets assets() const override;
  void restore(const Assets&) override;
  std::shared_ptr<torch::nn::Module> build() override;
  void fit(train::Fit&) override;
  int64_t items(Split) const override;
  std::vector<int64_t> lengths() const override;
  Loss loss(const Batch&) override;
  Metrics validate() override;
  Evaluation evaluate(Split) override;
  std::vector<uint64_t> item_keys(Split split) const override {
    return translate::keys_of(part(split).pairs);
  }
  void predict(Input, std::ostream&) override;
  size_t lines_together() const override { return 1; }
  std::vector<explain::Explanation> explain(Input*) override;
  Written write() const override;

 private:
  struct Part {
    std::vector<translate::Pair> pairs;
    std::vector<translate::Tokens> tokens;   // source to target
    std::vector<translate::Tokens> swapped;  // target to source
  };
  // Both directions for one pair: weights between words, and the links that follow from them.
  struct Aligned {
    std::vector<at::Tensor> weights;    // [target words, source words], then the other way round
    std::vector<metrics::Links> links;  // all in source-target order
    const metrics::Links& chosen() const { return links.back(); }
  };
  Part& part(Split split) {
    return split == Split::kTrain ? train_ : split == Split::kValidation ? validation_ : test_;
  }
  const Part& part(Split split) const { return const_cast<AlignmentTask*>(this)->part(split); }
  std::string prepared(const std::string& line) const;
  void encode(Part&) const;
  static void check_sentences(const Part&);  // no longer than the limit
  bool both() const { return run_options_.options.flag("both"); }
  std::optional<double> forced_loss(const Part&) const;  // none: the method has no loss
  std::vector<Aligned> align(const Part&) const;

  RunOptions run_options_;
  Part train_, validation_, test_;
  std::string read_;  // what was read, in words
  bool generated_ = false;
  std::shared_ptr<translate::Codec> source_codec_, target_codec_;
  std::vector<std::shared_ptr<Aligner>> aligners_;  // source to target; then the other way round
  std::map<std::string, std::string> counted_;      // what an aligner that counts has kept
};

}  // namespace fovea::systems
