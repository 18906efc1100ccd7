#include "translate/task.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/fields.h"
#include "translate/pictures.h"

namespace fovea::translate {
namespace {

constexpr const char* kSourceFile = "source.vocabulary";
constexpr const char* kTargetFile = "target.vocabulary";

Corpus generate_named(const std::string& name, uint64_t seed) {
  if (name == "dates") return generate_dates(seed);
  if (name == "german") return generate_german(seed);
  if (name == "copy-reverse") return generate_copy_reverse(seed);
  return generate_reordered(seed);
}

}  // namespace

TranslationTask::TranslationTask(std::string system, const RunOptions& run_options,
                                 MakeModel make_model, MorePictures more, Generate generate)
    : system_(std::move(system)),
      run_options_(run_options),
      make_model_(std::move(make_model)),
      more_(std::move(more)),
      generate_(std::move(generate)) {}
TranslationTask::~TranslationTask() = default;

void TranslationTask::read(const Source& source) {
  const OptionValues& o = run_options_.options;
  const auto generated = [&] {
    return generate_ ? generate_(o, source.seed) : generate_named(o.text("generator"), source.seed);
  };
  Corpus corpus = source.path.empty() ? generated()
                                      : read_parallel({.path = source.path,
                                                       .source = o.text("source"),
                                                       .target = o.text("target"),
                                                       .test = o.text("test"),
                                                       .seed = source.seed,
                                                       .test_only = source.all_test});
  read_ = in_words(corpus);
  train_.pairs = std::move(corpus.train);
  validation_.pairs = std::move(corpus.validation);
  test_.pairs = std::move(corpus.test);
  if (o.flag("lowercase")) {
    for (Part* p : {&train_, &validation_, &test_}) {
      for (Pair& pair : p->pairs)
        pair = {lower_case(pair.source), lower_case(pair.target), std::move(pair.links)};
    }
  }
  if (source_codec_) {
    for (Part* p : {&train_, &validation_, &test_}) encode(*p);
  }
}

Written TranslationTask::write() const {
  const OptionValues& o = run_options_.options;
  return write_parallel(
      {.path = "", .source = o.text("source"), .target = o.text("target"), .test = o.text("test")},
      train_.pairs, validation_.pairs, test_.pairs);
}

void TranslationTask::prepare() {
  const OptionValues& o = run_options_.options;
  if (train_.pairs.empty())
    throw InvalidArgument(fmt::format("training pairs: none among {}, expected at least one",
                                      validation_.pairs.size() + test_.pairs.size()));
  std::string tokens = o.text("tokens");
  const bool has_truth = !train_.pairs.empty() && !train_.pairs.front().links.possible.empty();
  if (tokens == "auto")
    tokens = !has_truth ? "pieces" : o.text("generator") == "dates" ? "characters" : "words";
  CodecRequest request{.kind = codec_kind(tokens),
                       .size = o.integer("vocabulary"),
                       .min_count = o.integer("min_count")};
  std::vector<std::string> source, target;
  for (const Pair& pair : train_.pairs) {
    source.push_back(pair.source);
    target.push_back(pair.target);
  }
  if (request.kind == CodecKind::kPieces) {  // one list of pieces for both languages
    source.insert(source.end(), target.begin(), target.end());
    source_codec_ = target_codec_ = learn_codec(source, request);
  } else {
    source_codec_ = learn_codec(source, request);
    target_codec_ = learn_codec(target, request);
  }
  for (Part* p : {&train_, &validation_, &test_}) encode(*p);
  const int64_t longest = o.integer("longest");
  Part kept;
  for (size_t i = 0; i < train_.pairs.size(); ++i) {
    const Tokens& t = train_.tokens[i];
    if (static_cast<int64_t>(std::max(t.source.ids.size(), t.target.ids.size())) > longest ||
        t.target.ids.empty())
      continue;
    kept.pairs.push_back(train_.pairs[i]);
    kept.tokens.push_back(t);
  }
  if (kept.pairs.empty())
    throw InvalidArgument(
        fmt::format("training pairs: {}, all empty or longer than {} tokens (--set longest), "
                    "expected at least one",
                    train_.pairs.size(), longest));
  train_ = std::move(kept);
}

void TranslationTask::encode(Part& p) const {
  p.tokens.clear();
  for (const Pair& pair : p.pairs)
    p.tokens.push_back({source_codec_->encode(pair.source), target_codec_->encode(pair.target)});
}

std::string TranslationTask::prepared(const std::string& line) const {
  return run_options_.options.flag("lowercase") ? lower_case(line) : line;
}
Encoded TranslationTask::read_source(const std::string& line) const {
  Encoded source = source_codec_->encode(prepared(line));
  check_sentence(source);
  return source;
}
PictureContext TranslationTask::context() const {
  return {system_, *source_codec_, *target_codec_};
}

Assets TranslationTask::assets() const {
  Assets assets;
  assets.files[kSourceFile] = source_codec_->bytes();
  if (source_codec_ != target_codec_) assets.files[kTargetFile] = target_codec_->bytes();
  return assets;
}

void TranslationTask::restore(const Assets& assets) {
  source_codec_ = codec_from_bytes(train::file_of(assets, kSourceFile), kSourceFile);
  target_codec_ = assets.files.contains(kTargetFile)
                      ? codec_from_bytes(train::file_of(assets, kTargetFile), kTargetFile)
                      : source_codec_;
}

std::shared_ptr<torch::nn::Module> TranslationTask::build() {
  const bool shared = source_codec_ == target_codec_;
  model_ =
      make_model_(run_options_.options, {source_codec_->size(), target_codec_->size(), shared});
  return model_;
}

const TranslationTask::Part& TranslationTask::part(Split split) const {
  return split == Split::kTrain ? train_ : split == Split::kValidation ? validation_ : test_;
}
int64_t TranslationTask::items(Split split) const {
  return static_cast<int64_t>(part(split).pairs.size());
}
std::vector<int64_t> TranslationTask::lengths() const { return lengths_of(train_.tokens); }

Loss TranslationTask::loss(const fovea::Batch& chosen) {
  std::vector<const Tokens*> items;
  for (const int64_t i : chosen.items) items.push_back(&train_.tokens[static_cast<size_t>(i)]);
  const Batch batch = make_batch(items, run_options_.device);
  const TokenLoss loss =
      token_loss(model_->logits(batch), batch, run_options_.options.number("label_smoothing"));
  return {loss.smoothed, batch.target_tokens};
}

}  // namespace fovea::translate
