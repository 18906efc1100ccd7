#include "systems/alignment/task.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <istream>
#include <ostream>

#include "data/batches.h"
#include "data/text.h"
#include "systems/alignment/view.h"
#include "train/answers.h"
#include "train/fit.h"
#include "translate/links.h"

namespace fovea::systems {
namespace {

using translate::Pair;
using translate::Tokens;

constexpr int64_t kEvaluateTokens = 4096;
constexpr const char* kSourceFile = "source.vocabulary";
constexpr const char* kTargetFile = "target.vocabulary";
constexpr const char* kDirections[] = {"forward.lexicon", "backward.lexicon"};

std::vector<int64_t> lengths_of(const std::vector<Tokens>& tokens) {
  std::vector<int64_t> lengths;
  for (const Tokens& t : tokens)
    lengths.push_back(static_cast<int64_t>(std::max(t.source.ids.size(), t.target.ids.size())) + 1);
  return lengths;
}

std::vector<const Tokens*> chosen_of(const std::vector<Tokens>& tokens,
                                     std::span<const int64_t> rows) {
  std::vector<const Tokens*> out;
  for (const int64_t i : rows) out.push_back(&tokens[static_cast<size_t>(i)]);
  return out;
}

metrics::Links turned(const metrics::Links& links) {
  metrics::Links out;
  for (const metrics::Link& link : links) out.insert({link.target, link.source});
  return out;
}

}  // namespace

void AlignmentTask::read(const Source& source) {
  const Settings& o = setting_.options;
  translate::Corpus corpus;
  if (source.path.empty()) {
    corpus = translate::generate_reordered(source.seed);
  } else if (translate::is_gold_corpus(source.path)) {
    if (!source.all_test)
      throw UsageError(
          source.path +
          ": gold alignments are for evaluate --data or --set gold=…, not to learn from");
    corpus.test = translate::read_gold_corpus(source.path);
  } else {
    corpus = translate::read_parallel({.path = source.path,
                                       .source = o.text("source"),
                                       .target = o.text("target"),
                                       .test = o.text("test"),
                                       .seed = source.seed,
                                       .test_only = source.all_test});
  }
  if (!o.text("gold").empty() && !source.all_test)
    corpus.test = translate::read_gold_corpus(o.text("gold"));
  train_.pairs = std::move(corpus.train);
  validation_.pairs = std::move(corpus.validation);
  test_.pairs = std::move(corpus.test);
  if (source_codec_) {
    for (Part* p : {&train_, &validation_, &test_}) encode(*p);
  }
}

std::string AlignmentTask::prepared(const std::string& line) const {
  return setting_.options.flag("lowercase") ? translate::lower_case(line) : line;
}

Written AlignmentTask::write() const {
  const Settings& o = setting_.options;
  return translate::write_parallel(
      {.path = "", .source = o.text("source"), .target = o.text("target"), .test = o.text("test")},
      train_.pairs, validation_.pairs, test_.pairs);
}

void AlignmentTask::prepare() {
  const Settings& o = setting_.options;
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
  const auto source = assets.files.find(kSourceFile), target = assets.files.find(kTargetFile);
  if (source == assets.files.end())
    throw InvalidArgument(std::string(kSourceFile) + ": missing, expected in the run's folder");
  source_codec_ = translate::codec_from_bytes(source->second, kSourceFile);
  target_codec_ = target == assets.files.end()
                      ? source_codec_
                      : translate::codec_from_bytes(target->second, kTargetFile);
  counted_ = assets.files;
}

std::shared_ptr<torch::nn::Module> AlignmentTask::build() {
  const bool shared = source_codec_ == target_codec_;
  const std::string& method = setting_.options.text("method");
  auto all = std::make_shared<torch::nn::Module>();
  const auto add = [&](const char* name, const translate::Vocabularies& sizes) {
    aligners_.push_back(all->register_module(name, make_aligner(method, setting_.options, sizes)));
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
  const int64_t passes = setting_.options.integer("passes");
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
  const double smoothing = setting_.options.number("label_smoothing");
  const translate::Batch forward =
      make_batch(chosen_of(train_.tokens, chosen.items), setting_.device);
  at::Tensor sum = aligners_[0]->loss(forward, smoothing);
  if (both())
    sum =
        sum + aligners_[1]->loss(
                  make_batch(chosen_of(train_.swapped, chosen.items), setting_.device), smoothing);
  return {sum, forward.target_tokens};
}

double AlignmentTask::forced_loss(const Part& p) const {
  const at::NoGradGuard no_grad;
  double sum = 0, tokens = 0;
  for (const auto& rows :
       data::ordered_batches(static_cast<int64_t>(p.tokens.size()), lengths_of(p.tokens),
                             {.tokens = kEvaluateTokens})) {
    const translate::Batch batch = make_batch(chosen_of(p.tokens, rows), setting_.device);
    const at::Tensor loss = aligners_[0]->loss(batch, 0);
    if (!loss.defined()) return std::nan("");
    sum += loss.item<double>() * static_cast<double>(batch.target_tokens);
    tokens += static_cast<double>(batch.target_tokens);
  }
  return tokens > 0 ? sum / tokens : 0;
}

Metrics AlignmentTask::validate() {
  const double loss = forced_loss(validation_);
  return {{"loss", loss}, {"perplexity", std::exp(loss)}};
}

std::vector<AlignmentTask::Aligned> AlignmentTask::align(const Part& p) const {
  const at::NoGradGuard no_grad;
  std::vector<Aligned> out(p.pairs.size());
  for (const auto& rows :
       data::ordered_batches(static_cast<int64_t>(p.tokens.size()), lengths_of(p.tokens),
                             {.tokens = kEvaluateTokens})) {
    for (size_t d = 0; d < aligners_.size(); ++d) {
      const std::vector<const Tokens*> items = chosen_of(d == 0 ? p.tokens : p.swapped, rows);
      const at::Tensor soft =
          aligners_[d]->weights(make_batch(items, setting_.device)).to(at::kCPU);
      for (size_t k = 0; k < items.size(); ++k) {
        Aligned& pair = out[static_cast<size_t>(rows[k])];
        pair.weights.push_back(translate::word_weights(soft[static_cast<int64_t>(k)], *items[k]));
        const metrics::Links links = aligners_[d]->has_null()
                                         ? translate::likely_links(pair.weights.back())
                                         : translate::best_links(pair.weights.back());
        pair.links.push_back(d == 0 ? links : turned(links));
      }
    }
  }
  const std::string& how = setting_.options.text("symmetrise");
  for (Aligned& pair : out) {
    if (how == "none" || pair.links.size() < 2)
      pair.links.push_back(metrics::Links(pair.links[0]));
    else
      pair.links.push_back(
          metrics::symmetrise(pair.links[0], pair.links[1], metrics::parse_symmetrisation(how)));
  }
  return out;
}

Evaluation AlignmentTask::evaluate(Split split) {
  const Part& p = part(split);
  if (p.pairs.empty()) throw InvalidArgument("evaluate: no sentence pairs in this split");
  Evaluation result;
  result.items = static_cast<int64_t>(p.pairs.size());
  if (const double loss = forced_loss(p); std::isfinite(loss))
    result.metrics = {{"loss", loss}, {"perplexity", std::exp(loss)}};
  const bool has_gold = std::any_of(p.pairs.begin(), p.pairs.end(),
                                    [](const Pair& pair) { return !pair.links.possible.empty(); });
  if (!has_gold) return result;
  const std::vector<Aligned> aligned = align(p);
  const auto rate = [&](const auto& links_of) {
    metrics::AlignmentErrorRate aer;
    for (size_t i = 0; i < aligned.size(); ++i) aer.add(links_of(aligned[i]), p.pairs[i].links);
    return aer;
  };
  translate::HitRate hits;
  for (size_t i = 0; i < aligned.size(); ++i) hits.add(aligned[i].links[0], p.pairs[i].links);
  const metrics::AlignmentErrorRate chosen = rate([](const Aligned& a) { return a.chosen(); });
  result.metrics.insert({{"aer", chosen.error_rate()},
                         {"precision", chosen.precision()},
                         {"recall", chosen.recall()}});
  result.metrics["aer_forward"] = rate([](const Aligned& a) { return a.links[0]; }).error_rate();
  if (both()) {
    result.metrics["aer_backward"] = rate([](const Aligned& a) { return a.links[1]; }).error_rate();
    for (const char* how : {"intersection", "union", "grow-diag-final-and"}) {
      const auto kind = metrics::parse_symmetrisation(how);
      result.metrics[std::string("aer_") + how] =
          rate([&](const Aligned& a) {
            return metrics::symmetrise(a.links[0], a.links[1], kind);
          }).error_rate();
    }
  }
  result.attention = {{"hit_rate", hits.rate()}, {"aer", chosen.error_rate()}};
  return result;
}

void AlignmentTask::predict(Input input, std::ostream& out) {
  const bool soft = setting_.options.text("output") == "soft";
  answer_lines(input, out, [&](size_t, std::string_view line, std::ostream& to) {
    const auto pair = translate::split_pair(line);
    if (!pair && !line.empty())
      throw InvalidArgument("expected `source ||| target` or source<TAB>target");
    Part one;
    if (pair) one.pairs.push_back(*pair);
    encode(one);
    if (one.pairs.empty() || one.tokens[0].source.ids.empty() || one.tokens[0].target.ids.empty()) {
      to << '\n';
      return;
    }
    const Aligned aligned = align(one)[0];
    if (soft) {
      const at::Tensor weights = aligned.weights[0].contiguous();
      Json rows = Json::array();
      for (int64_t t = 0; t < weights.size(0); ++t) rows.push_back(to_floats(weights[t]));
      to << Json{{"links", metrics::format_pharaoh(aligned.chosen())}, {"weights", rows}}.dump()
         << '\n';
    } else {
      to << metrics::format_pharaoh(aligned.chosen()) << '\n';
    }
  });
}

std::vector<explain::Explanation> AlignmentTask::explain(Input* input) {
  constexpr size_t kShown = 3;
  Part shown;
  if (input != nullptr) {
    for (std::string line; std::getline(input->stream, line);) {
      if (const auto pair = translate::split_pair(line)) shown.pairs.push_back(*pair);
    }
  } else {
    for (size_t i = 0; i < test_.pairs.size() && shown.pairs.size() < kShown; ++i) {
      if (data::words(test_.pairs[i].source).size() > 5) shown.pairs.push_back(test_.pairs[i]);
    }
  }
  encode(shown);
  std::vector<explain::Explanation> all;
  const std::vector<Aligned> aligned = align(shown);
  for (size_t i = 0; i < aligned.size(); ++i) {
    if (aligned[i].weights[0].numel() == 0) continue;
    const AlignedPair pair{shown.pairs[i], aligned[i].weights[0], aligned[i].chosen(),
                           setting_.options.text("method"), setting_.options.text("symmetrise")};
    for (explain::Explanation& e : alignment_pictures(pair)) all.push_back(std::move(e));
  }
  return all;
}

}  // namespace fovea::systems
