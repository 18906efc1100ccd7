#include "translate/links.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace fovea::translate {
namespace {

int64_t count_words(const Encoded& side) { return side.words.empty() ? 0 : side.words.back() + 1; }

// [tokens, words] with a one where a token is part of a word.
at::Tensor membership(const Encoded& side) {
  const int64_t n = static_cast<int64_t>(side.words.size());
  const at::Tensor index = at::tensor(side.words, at::kInt).to(at::kLong);
  return at::zeros({n, count_words(side)}).scatter_(1, index.unsqueeze(1), 1.0);
}

// body(link to the best source word, its weight, what the row lacks to one) for each target word.
template <class Body>
void each_best(const at::Tensor& weights, Body body) {
  if (weights.size(1) == 0) return;
  const at::Tensor rows = weights.contiguous();
  for (int64_t t = 0; t < rows.size(0); ++t) {
    const float* row = rows.const_data_ptr<float>() + t * rows.size(1);
    const float* best = std::max_element(row, row + rows.size(1));
    body(metrics::Link{static_cast<int32_t>(best - row), static_cast<int32_t>(t)}, *best,
         1 - std::accumulate(row, row + rows.size(1), 0.0f));
  }
}

}  // namespace

at::Tensor word_weights(const at::Tensor& weights, const Tokens& tokens) {
  const int64_t sources = static_cast<int64_t>(tokens.source.ids.size()),
                targets = static_cast<int64_t>(tokens.target.ids.size());
  if (sources == 0 || targets == 0)
    return at::zeros({count_words(tokens.target), count_words(tokens.source)});
  const at::Tensor real =
      weights.slice(0, 0, targets).slice(1, 0, sources).to(at::kCPU, at::kFloat);
  const at::Tensor to_target = membership(tokens.target);
  const at::Tensor mean = to_target / to_target.sum(0, /*keepdim=*/true);
  return at::mm(mean.t(), at::mm(real, membership(tokens.source)));
}

metrics::Links best_links(const at::Tensor& weights) {
  metrics::Links links;
  each_best(weights, [&](const metrics::Link& link, float, float) { links.insert(link); });
  return links;
}

metrics::Links likely_links(const at::Tensor& weights) {
  metrics::Links links;
  each_best(weights, [&](const metrics::Link& link, float best, float rest) {
    if (best > rest) links.insert(link);
  });
  return links;
}

void HitRate::add(const metrics::Links& links, const metrics::GoldLinks& truth) {
  std::set<int32_t> known;
  for (const metrics::Link& link : truth.possible) known.insert(link.target);
  for (const metrics::Link& link : links) {
    if (!known.contains(link.target)) continue;
    ++asked;
    hits += truth.possible.contains(link);
  }
}

}  // namespace fovea::translate
