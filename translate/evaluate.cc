// How a translation system is judged: by the loss of the references, and by what it says.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/batches.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "train/interrupt.h"
#include "train/ranks/shared_work.h"
#include "translate/links.h"
#include "translate/task.h"

namespace fovea::translate {
namespace {

constexpr int64_t kEvaluateTokens = 4096;  // of a batch without gradients

// The share of the target, its end included, before the first wrong token.
double right_until_failure(const std::vector<int64_t>& said, std::vector<int64_t> target) {
  target.push_back(kEnd);
  const auto wrong = std::mismatch(target.begin(), target.end(), said.begin(), said.end()).first;
  return static_cast<double>(wrong - target.begin()) / static_cast<double>(target.size());
}

}  // namespace

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
