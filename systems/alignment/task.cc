#include "systems/alignment/task.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "train/descent/fit.h"
#include "train/fields.h"
#include "translate/batch.h"

namespace fovea::systems {
namespace {

using translate::Pair;
using translate::Tokens;

constexpr const char* kSourceFile = "source.vocabulary";
constexpr const char* kTargetFile = "target.vocabulary";
constexpr const char* kDirections[] = {"forward.lexicon", "backward.lexicon"};

}  // namespace

void AlignmentTask::read(const Source& source) {
  const OptionValues& o = run_options_.options;
  translate::Corpus corpus;
  if (source.path.empty()) {
    corpus = o.text("generator") == "german" ? translate::generate_german(source.seed)
                                             : translate::generate_reordered(source.seed);
  } else if (translate::is_gold_corpus(source.path)) {
    if (!source.all_test)
      throw UsageError(
          source.path +
          ": gold alignments are for evaluate --data or --set gold=…, not for training");
    corpus.test = translate::read_gold_corpus(source.path);
  } else {
    corpus = translate::read_parallel({.path = source.path,
                                       .source = o.text("source"),
                                       .target = o.text("target"),
                                       .test = o.text("test"),
                                       .seed = source.seed,
                                       .test_only = source.all_test});
  }
  generated_ = source.path.empty() && o.text("gold").empty();
  if (!o.text("gold").empty() && !source.all_test)
    corpus.test = translate::read_gold_corpus(o.text("gold"));
  read_ = translate::in_words(corpus);
  train_.pairs = std::move(corpus.train);
  validation_.pairs = std::move(corpus.validation);
  test_.pairs = std::move(corpus.test);
  if (source_codec_) {
    for (Part* p : {&train_, &validation_, &test_}) encode(*p);
  }
}

std::string AlignmentTask::prepared(const std::string& line) const {
  return run_options_.options.flag("lowercase") ? translate::lower_case(line) : line;
}

Written AlignmentTask::write() const {
  const OptionValues& o = run_options_.options;
  return translate::write_parallel(
      {.path = "", .source = o.text("source"), .target = o.text("target"), .test = o.text("test")},
      train_.pairs, validation_.pairs, test_.pairs);
}

void AlignmentTask::prepare() {
  const OptionValues& o = run_options_.options;
  const translate::CodecRequest request{.kind = translate::codec_kind(o.text("tokens")),
                                        .size = o.integer("vocabulary"),
                                        .min_count = o.integer("min_count")};
  std::vector<std::string> source, target;
  for (const Pair& pair : train_.pairs) {
    source.push_back(prepared(pair.source));
    target.push_back(prepared(pair.target));
  }
  if (request.kind == translate::CodecKind::kPieces) {
    source.insert(source.end(), target.begin(), target.end());
    source_codec_ = target_codec_ = translate::learn_codec(source, request);
  } else {
    source_codec_ = translate::learn_codec(source, request);
    target_codec_ = translate::learn_codec(target, request);
  }
  const int64_t longest = o.integer("longest");
  encode(train_);
  std::vector<Pair> kept;
  for (size_t i = 0; i < train_.pairs.size(); ++i) {
    const size_t s = train_.tokens[i].source.ids.size(), t = train_.tokens[i].target.ids.size();
    if (s > 0 && t > 0 && static_cast<int64_t>(std::max(s, t)) <= longest)
      kept.push_back(std::move(train_.pairs[i]));
  }
  train_.pairs = std::move(kept);
  for (Part* p : {&train_, &validation_, &test_}) encode(*p);
}

void AlignmentTask::encode(Part& p) const {
  p.tokens.clear();
  p.swapped.clear();
  for (const Pair& pair : p.pairs) {
    p.tokens.push_back({source_codec_->encode(prepared(pair.source)),
                        target_codec_->encode(prepared(pair.target))});
    p.swapped.push_back({p.tokens.back().target, p.tokens.back().source});
  }
}

Assets AlignmentTask::assets() const {
  Assets assets;
  assets.files[kSourceFile] = source_codec_->bytes();
  if (source_codec_ != target_codec_) assets.files[kTargetFile] = target_codec_->bytes();
  for (size_t d = 0; d < aligners_.size(); ++d) {
    if (aligners_[d]->counts()) assets.files[kDirections[d]] = aligners_[d]->bytes();
  }
  return assets;
}

void AlignmentTask::restore(const Assets& assets) {
  source_codec_ = translate::codec_from_bytes(train::file_of(assets, kSourceFile), kSourceFile);
  target_codec_ =
      assets.files.contains(kTargetFile)
          ? translate::codec_from_bytes(train::file_of(assets, kTargetFile), kTargetFile)
          : source_codec_;
  counted_ = assets.files;
}

std::shared_ptr<torch::nn::Module> AlignmentTask::build() {
  const bool shared = source_codec_ == target_codec_;
  const std::string& method = run_options_.options.text("method");
  auto all = std::make_shared<torch::nn::Module>();
  aligners_.clear();
  const auto add = [&](const char* name, const translate::Vocabularies& sizes) {
    aligners_.push_back(
        all->register_module(name, make_aligner(method, run_options_.options, sizes)));
    const auto kept = counted_.find(kDirections[aligners_.size() - 1]);
    if (kept != counted_.end()) aligners_.back()->restore(kept->second, kept->first);
  };
  add("forward", {source_codec_->size(), target_codec_->size(), shared});
  if (both()) add("backward", {target_codec_->size(), source_codec_->size(), shared});
  return all;
}

int64_t AlignmentTask::items(Split split) const {
  return static_cast<int64_t>(part(split).pairs.size());
}
std::vector<int64_t> AlignmentTask::lengths() const { return lengths_of(train_.tokens); }

void AlignmentTask::fit(train::Fit& fit) {
  if (!aligners_[0]->counts()) {
    if (!fit.model().parameters().empty()) GradientTask::fit(fit);
    return;
  }
  const int64_t passes = run_options_.options.integer("passes");
  for (int64_t pass = 0; pass < passes; ++pass) {
    double loss = 0;
    for (size_t d = 0; d < aligners_.size(); ++d) {
      std::vector<const Tokens*> pairs;
      for (const Tokens& t : d == 0 ? train_.tokens : train_.swapped) pairs.push_back(&t);
      loss += aligners_[d]->count(pairs) / static_cast<double>(aligners_.size());
    }
    fit.record({{"epoch", pass + 1}, {"loss", loss}});
    fit.progress().step(pass + 1, passes,
                        fmt::format("pass {}/{}  loss {:.4g}", pass + 1, passes, loss));
    fit.stop_if_interrupted(fmt::format("after pass {}", pass + 1));
  }
}

Loss AlignmentTask::loss(const Batch& chosen) {
  const double smoothing = run_options_.options.number("label_smoothing");
  const translate::Batch forward =
      make_batch(chosen_of(train_.tokens, chosen.items), run_options_.device);
  at::Tensor sum = aligners_[0]->loss(forward, smoothing);
  if (both())
    sum = sum +
          aligners_[1]->loss(
              make_batch(chosen_of(train_.swapped, chosen.items), run_options_.device), smoothing);
  return {sum, forward.target_tokens};
}

}  // namespace fovea::systems
