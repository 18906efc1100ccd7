// How a translation system searches: sentences of similar length together, and, in an evaluation, each
// rank some of them.
#include <ATen/ATen.h>

#include "data/batches.h"
#include "train/ranks/shared_work.h"
#include "translate/task.h"

namespace fovea::translate {
namespace {

constexpr int64_t kSearchTokens = 2048;  // of hypotheses searched together
constexpr int64_t kExtraLength =
    50;  // a translation is cut off at source + 50 tokens (Wu et al. 2016)

}  // namespace

nn::BeamOptions TranslationTask::beam_options() const {
  const OptionValues& o = run_options_.options;
  return {.beam = o.integer("beam"),
          .length_alpha = o.number("alpha"),
          .coverage_beta = o.number("coverage"),
          .never = {kPad, kBegin}};
}

TranslationTask::Batches TranslationTask::search_batches(const std::vector<const Encoded*>& sources,
                                                         const nn::BeamOptions& options) {
  std::vector<int64_t> lengths, full;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i]->ids.empty()) continue;  // an empty line stays empty
    full.push_back(static_cast<int64_t>(i));
    lengths.push_back(static_cast<int64_t>(sources[i]->ids.size()) + 1);
  }
  if (full.empty()) return {};
  Batches batches = data::ordered_batches(static_cast<int64_t>(full.size()), lengths,
                                          {.tokens = kSearchTokens / options.beam});
  for (auto& rows : batches)
    for (int64_t& row : rows) row = full[static_cast<size_t>(row)];
  return batches;
}

std::vector<nn::SearchResult> TranslationTask::search(const std::vector<const Encoded*>& sources,
                                                      const Batches& batches,
                                                      const nn::BeamOptions& options) {
  const at::NoGradGuard no_grad;
  const Want want =
      options.coverage_beta > 0 || options.keep_attention ? Want::kAttention : Want::kTokens;
  std::vector<nn::SearchPart> parts;
  for (const auto& rows : batches) {
    std::vector<const Encoded*> items;
    std::vector<int64_t> caps;
    for (const int64_t row : rows) {
      items.push_back(sources[static_cast<size_t>(row)]);
      caps.push_back(static_cast<int64_t>(items.back()->ids.size()) + kExtraLength);
    }
    parts.push_back({[this, items, want] {
                       return model_->start(make_sources(items, run_options_.device), want);
                     },
                     caps});
  }
  std::vector<nn::SearchResult> results(sources.size());
  auto found = nn::beam_search(parts, options);
  for (size_t p = 0; p < parts.size(); ++p)
    for (size_t k = 0; k < batches[p].size(); ++k)
      results[static_cast<size_t>(batches[p][k])] = std::move(found[p][k]);
  return results;
}

std::vector<nn::SearchResult> TranslationTask::translate(const std::vector<const Encoded*>& sources,
                                                         const nn::BeamOptions& options) {
  return search(sources, search_batches(sources, options), options);
}

// What ranks tell each other of a sentence: 0 where nothing was found; otherwise how many tokens and one,
// log-probability, score, tokens.
std::vector<nn::SearchResult> TranslationTask::translate_together(
    const std::vector<const Encoded*>& sources, const nn::BeamOptions& options) {
  if (!run_options_.ranks) return translate(sources, options);
  const Batches batches = search_batches(sources, options);
  const auto of_batches = [&](const std::vector<size_t>& own) {
    Batches chosen;
    for (const size_t i : own) chosen.push_back(batches[i]);
    const std::vector<nn::SearchResult> found = search(sources, chosen, options);
    std::vector<train::Numbers> out;
    for (const auto& rows : chosen) {
      train::Numbers& numbers = out.emplace_back();
      for (const int64_t row : rows) {
        const auto& n_best = found[static_cast<size_t>(row)].n_best;
        numbers.push_back(n_best.empty() ? 0 : static_cast<double>(n_best[0].tokens.size()) + 1);
        if (n_best.empty()) continue;
        numbers.push_back(n_best[0].log_probability);
        numbers.push_back(n_best[0].score);
        numbers.insert(numbers.end(), n_best[0].tokens.begin(), n_best[0].tokens.end());
      }
    }
    return out;
  };
  const auto all = train::shared_work_together(run_options_.ranks, batches.size(), of_batches,
                                               "the translations of an evaluation");
  std::vector<nn::SearchResult> results(sources.size());
  for (size_t i = 0; i < batches.size(); ++i) {
    auto at = all[i].begin();
    for (const int64_t row : batches[i]) {
      const auto size = static_cast<std::ptrdiff_t>(*at++) - 1;
      if (size < 0) continue;
      nn::Hypothesis& best = results[static_cast<size_t>(row)].n_best.emplace_back();
      best.log_probability = *at++;
      best.score = *at++;
      for (const auto end = at + size; at != end; ++at)
        best.tokens.push_back(static_cast<int64_t>(*at));
    }
  }
  return results;
}

}  // namespace fovea::translate
