#include "translate/task.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <istream>

#include "data/batches.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "train/fields.h"
#include "train/interrupt.h"
#include "train/ranks/shared_work.h"
#include "translate/links.h"
#include "translate/pictures.h"

namespace fovea::translate {
namespace {

constexpr int64_t kEvaluateTokens = 4096;  // of a batch without gradients
constexpr const char* kSourceFile = "source.vocabulary";
constexpr const char* kTargetFile = "target.vocabulary";

Corpus generate_named(const std::string& name, uint64_t seed) {
  if (name == "dates") return generate_dates(seed);
  if (name == "german") return generate_german(seed);
  if (name == "copy-reverse") return generate_copy_reverse(seed);
  return generate_reordered(seed);
}

// The share of the target, its end included, before the first wrong token.
double right_until_failure(const std::vector<int64_t>& said, std::vector<int64_t> target) {
  target.push_back(kEnd);
  const auto wrong = std::mismatch(target.begin(), target.end(), said.begin(), said.end()).first;
  return static_cast<double>(wrong - target.begin()) / static_cast<double>(target.size());
}

}  // namespace

std::vector<std::string> formats(const std::string& generated) {
  return {generated, "folder of PART.LANG[.gz] parallel text", "source<TAB>target lines"};
}

std::vector<Option> task_options(const Defaults& defaults) {
  return {
      Option("generator", defaults.generator.c_str(), "generated text when no --data is given")
          .among({"dates", "reordered", "german", "copy-reverse"}),
      Option("source", "en", "source language: the ending of its files")
          .during({Use::kEvaluate, Use::kExplain}),
      Option("target", "de", "target language: the ending of its files")
          .during({Use::kEvaluate, Use::kExplain}),
      Option("test", "test", "name of the test files, for example test_2016_flickr")
          .during({Use::kEvaluate, Use::kExplain}),
      Option("tokens", "auto",
             "units: words, characters or SentencePiece pieces; auto is pieces for --data, "
             "characters for dates")
          .among({"auto", "words", "characters", "pieces"}),
      Option("vocabulary", 8000,
             "size of the vocabulary: of both languages together for pieces, of each for words")
          .between(8, 10000000),
      Option("min_count", 1, "words seen fewer times are unknown").between(1, 1000000000),
      Option("lowercase", false, "lower-case all text"),
      Option("longest", 100, "training pairs with more tokens on a side are left out")
          .between(1, 100000),
      Option("label_smoothing", defaults.label_smoothing,
             "share of the target spread over the other tokens")
          .between(0, 0.9),
      Option("beam", defaults.beam, "width of the beam; 1 is greedy")
          .between(1, 1000)
          .during({Use::kEvaluate, Use::kPredict, Use::kExplain}),
      Option("alpha", defaults.alpha, "exponent of the length normalisation in the beam")
          .between(0, 5)
          .during({Use::kEvaluate, Use::kPredict, Use::kExplain}),
      Option("coverage", defaults.coverage, "weight of the coverage penalty")
          .between(0, 10)
          .during({Use::kEvaluate, Use::kPredict, Use::kExplain}),
      Option("align", false, "predict: print the alignment of each line after ` ||| `")
          .during({Use::kPredict}),
      Option("n_best", 1,
             "predict: number of answers for each line, with log-probability and score")
          .between(1, 1000)
          .during({Use::kPredict}),
      Option("forced", false,
             "predict: read source<TAB>target lines, print each target's log-probability and "
             "number of tokens")
          .during({Use::kPredict}),
      Option("control", "",
             "explain: a .json explanation of another run (seq2seq: the bottleneck) to draw in the "
             "plot of score against length")
          .during({Use::kExplain}),
      Option("replace_unknown", false,
             "replace an unknown word by the source word with the largest weight")
          .during({Use::kPredict}),
  };
}

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

std::string TranslationTask::read_in_words() const {
  return fmt::format("{} pairs to learn from, {} to choose by, {} to judge", train_.pairs.size(),
                     validation_.pairs.size(), test_.pairs.size());
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

// Loss, tokens, weights and zeros of a batch; then, where links are wanted, for each item how many it
// has, and their ends.
std::vector<double> TranslationTask::forced_batch(const Part& p, const std::vector<int64_t>& rows,
                                                  bool want_links) {
  train::stop_if_interrupted("while judging");
  const at::NoGradGuard no_grad;
  std::vector<const Tokens*> items;
  for (const int64_t i : rows) items.push_back(&p.tokens[static_cast<size_t>(i)]);
  const Batch batch = make_batch(items, run_options_.device);
  const TokenLoss loss = token_loss(model_->logits(batch), batch, 0);
  const auto tokens = static_cast<double>(batch.target_tokens);
  std::vector<double> out = {loss.plain.to(at::kDouble).item<double>() * tokens, tokens, 0, 0};
  const at::Tensor soft = want_links ? model_->alignment(batch) : at::Tensor();
  for (size_t k = 0; soft.defined() && k < items.size(); ++k) {
    const at::Tensor real =
        soft[static_cast<int64_t>(k)]
            .narrow(0, 0, static_cast<int64_t>(items[k]->target.ids.size()) + 1)
            .narrow(1, 0, static_cast<int64_t>(items[k]->source.ids.size()) + 1);
    out[2] += static_cast<double>(real.numel());
    out[3] += static_cast<double>(real.eq(0).sum().item<int64_t>());
    const metrics::Links links = best_links(word_weights(soft[static_cast<int64_t>(k)], *items[k]));
    out.push_back(static_cast<double>(links.size()));
    for (const metrics::Link& link : links) {
      out.push_back(link.source);
      out.push_back(link.target);
    }
  }
  return out;
}

TranslationTask::Forced TranslationTask::forced(const Part& p, bool want_links) {
  const auto batches = data::ordered_batches(static_cast<int64_t>(p.tokens.size()),
                                             lengths_of(p.tokens), {.tokens = kEvaluateTokens});
  const auto found = train::shared_work(
      run_options_.ranks, batches.size(),
      [&](size_t i) { return forced_batch(p, batches[i], want_links); }, "an evaluation");
  Forced result;
  result.links.resize(want_links ? p.tokens.size() : 0);
  std::vector<double> losses;
  for (size_t i = 0; i < batches.size(); ++i) {
    const std::vector<double>& one = found[i];
    losses.push_back(one[0]);
    result.tokens += static_cast<int64_t>(one[1]);
    result.weights += one[2];
    result.zeros += one[3];
    size_t at = 4;
    for (size_t k = 0; at < one.size(); ++k) {
      metrics::Links& links = result.links[static_cast<size_t>(batches[i][k])];
      for (auto left = static_cast<size_t>(one[at++]); left > 0; --left, at += 2)
        links.insert({static_cast<int32_t>(one[at]), static_cast<int32_t>(one[at + 1])});
    }
  }
  if (!losses.empty()) result.loss = at::tensor(losses, at::kDouble).sum().item<double>();
  return result;
}

Metrics TranslationTask::validate() {
  const Forced f = forced(validation_, false);
  const double loss = f.loss / static_cast<double>(std::max<int64_t>(f.tokens, 1));
  return {{"loss", loss}, {"perplexity", std::exp(loss)}};
}

Evaluation TranslationTask::evaluate(Split split) {
  const Part& p = part(split);
  if (p.pairs.empty()) throw InvalidArgument("evaluate: no sentence pairs in this split");
  const bool has_truth = !p.pairs.front().links.possible.empty();
  const Forced f = forced(p, has_truth);
  if (!std::isfinite(f.loss))
    throw InvalidArgument(fmt::format("loss: {}, expected a finite number", f.loss));
  std::vector<const Encoded*> sources;
  for (const Tokens& t : p.tokens) sources.push_back(&t.source);
  const std::vector<nn::SearchResult> found = translate_together(sources, beam_options());
  std::vector<std::string> hypotheses;
  std::vector<std::vector<std::string>> references(1);
  double exact = 0, before_failure = 0;
  for (size_t i = 0; i < p.pairs.size(); ++i) {
    hypotheses.push_back(
        found[i].n_best.empty() ? "" : target_codec_->decode(found[i].n_best[0].tokens));
    references[0].push_back(p.pairs[i].target);
    exact += hypotheses.back() == p.pairs[i].target;
    before_failure += right_until_failure(
        found[i].n_best.empty() ? std::vector<int64_t>() : found[i].n_best[0].tokens,
        p.tokens[i].target.ids);
  }
  Evaluation result;
  result.items = static_cast<int64_t>(p.pairs.size());
  result.metrics = {{"bleu", metrics::corpus_bleu(hypotheses, references, {}).score},
                    {"chrf", metrics::corpus_chrf(hypotheses, references, {})},
                    {"exact", exact / static_cast<double>(p.pairs.size())},
                    {"perplexity", std::exp(f.loss / static_cast<double>(f.tokens))}};
  // For a corpus with known truth: answers are right or wrong, not better or worse.
  if (has_truth)
    result.metrics["before_failure"] = before_failure / static_cast<double>(p.pairs.size());
  if (has_truth && !f.links.empty() && !f.links.front().empty()) {
    HitRate hits;
    metrics::AlignmentErrorRate aer;
    for (size_t i = 0; i < p.pairs.size(); ++i) {
      hits.add(f.links[i], p.pairs[i].links);
      aer.add(f.links[i], p.pairs[i].links);
    }
    result.attention = {{"hit_rate", hits.rate()}, {"zeros", f.zeros / f.weights}};
    if (const double rate = aer.error_rate(); !std::isnan(rate)) result.attention["aer"] = rate;
  }
  return result;
}

}  // namespace fovea::translate
