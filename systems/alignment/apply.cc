// Uses a trained aligner: finds links of pairs, evaluates, prints and draws them.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <istream>
#include <numeric>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "data/batches.h"
#include "data/files/file.h"
#include "data/formats/text.h"
#include "systems/alignment/task.h"
#include "systems/alignment/view.h"
#include "train/answers.h"
#include "translate/batch.h"
#include "translate/links.h"

namespace fovea::systems {
namespace {

constexpr int64_t kAlignedTokens = 4096;  // of a batch
constexpr const char* kExpectedPair = "expected `source ||| target` or source<TAB>target";

metrics::Links turned(const metrics::Links& links) {
  metrics::Links out;
  for (const metrics::Link& link : links) out.insert({link.target, link.source});
  return out;
}

bool cross(const metrics::Links& links) {
  for (const metrics::Link& one : links)
    for (const metrics::Link& other : links)
      if (one.source < other.source && one.target > other.target) return true;
  return false;
}

// How well a pair shows what alignment is: words enough for an order, few enough to be read, and
// some that change places.
size_t worth(const translate::Pair& pair) {
  constexpr size_t kEnough = 6, kMost = 14, kReadable = 100, kCrossing = 10;
  const size_t words = data::words(pair.source).size();
  return std::min(kEnough, words) + (words >= kEnough && words <= kMost ? kReadable : 0) +
         (cross(pair.links.sure) ? kCrossing : 0);
}

// Pairs that may be drawn, those that show most first.
std::vector<translate::Pair> worth_drawing(const std::vector<translate::Pair>& pairs) {
  constexpr size_t kCandidates = 24;
  std::vector<std::pair<size_t, const translate::Pair*>> ranked;
  for (const translate::Pair& pair : pairs) ranked.emplace_back(worth(pair), &pair);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<translate::Pair> out;
  for (const auto& [words, pair] : ranked)
    if (words > 0 && out.size() < kCandidates) out.push_back(*pair);
  return out;
}

// The share of links that are true.
double right_share(const metrics::Links& found, const metrics::GoldLinks& gold) {
  const auto right = std::count_if(found.begin(), found.end(), [&](const metrics::Link& link) {
    return gold.possible.contains(link);
  });
  return found.empty() ? 0 : static_cast<double>(right) / static_cast<double>(found.size());
}

}  // namespace

std::optional<double> AlignmentTask::forced_loss(const Part& p) const {
  const at::NoGradGuard no_grad;
  double sum = 0, tokens = 0;
  for (const auto& rows : data::ordered_batches(static_cast<int64_t>(p.tokens.size()),
                                                lengths_of(p.tokens), {.tokens = kAlignedTokens})) {
    const translate::Batch batch = make_batch(chosen_of(p.tokens, rows), run_options_.device);
    const at::Tensor loss = aligners_[0]->loss(batch, 0);
    if (!loss.defined()) return std::nullopt;
    sum += loss.item<double>() * static_cast<double>(batch.target_tokens);
    tokens += static_cast<double>(batch.target_tokens);
  }
  return tokens > 0 ? sum / tokens : 0;
}

Metrics AlignmentTask::validate() {
  const auto loss = forced_loss(validation_);
  if (!loss) return {};
  return {{"loss", *loss}, {"perplexity", std::exp(*loss)}};
}

std::vector<AlignmentTask::Aligned> AlignmentTask::align(const Part& p) const {
  const at::NoGradGuard no_grad;
  std::vector<Aligned> out(p.pairs.size());
  for (const auto& rows : data::ordered_batches(static_cast<int64_t>(p.tokens.size()),
                                                lengths_of(p.tokens), {.tokens = kAlignedTokens})) {
    for (size_t d = 0; d < aligners_.size(); ++d) {
      const std::vector<const translate::Tokens*> items =
          chosen_of(d == 0 ? p.tokens : p.swapped, rows);
      const at::Tensor soft =
          aligners_[d]->weights(make_batch(items, run_options_.device)).to(at::kCPU);
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
  const std::string& how = run_options_.options.text("symmetrise");
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
  if (const auto loss = forced_loss(p))
    result.metrics = {{"loss", *loss}, {"perplexity", std::exp(*loss)}};
  const bool has_gold =
      std::any_of(p.pairs.begin(), p.pairs.end(),
                  [](const translate::Pair& pair) { return !pair.links.possible.empty(); });
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
  result.put("aer", chosen.error_rate());
  result.put("precision", chosen.precision());
  result.put("recall", chosen.recall());
  result.put("aer_forward", rate([](const Aligned& a) { return a.links[0]; }).error_rate());
  if (both()) {
    result.put("aer_backward", rate([](const Aligned& a) { return a.links[1]; }).error_rate());
    for (const char* how : {"intersection", "union", "grow-diag-final-and"}) {
      const auto kind = metrics::parse_symmetrisation(how);
      result.put(std::string("aer_") + how, rate([&](const Aligned& a) {
                                              return metrics::symmetrise(a.links[0], a.links[1],
                                                                         kind);
                                            }).error_rate());
    }
  }
  result.attention = {{"hit_rate", hits.rate()}};
  if (result.metrics.contains("aer")) result.attention["aer"] = chosen.error_rate();
  return result;
}

void AlignmentTask::check_sentences(const Part& part) {
  for (const translate::Tokens& tokens : part.tokens) {
    translate::check_sentence(tokens.source);
    translate::check_sentence(tokens.target);
  }
}

void AlignmentTask::predict(Input input, std::ostream& out) {
  const bool soft = run_options_.options.text("output") == "soft";
  answer_lines(input, out, [&](size_t, std::string_view line) -> Answered {
    const auto pair = translate::split_pair(line);
    if (!pair && !line.empty()) throw InvalidArgument(kExpectedPair);
    Part one;
    if (pair) one.pairs.push_back(*pair);
    encode(one);
    check_sentences(one);
    if (one.pairs.empty() || one.tokens[0].source.ids.empty() || one.tokens[0].target.ids.empty())
      return {"\n", [] { return Json{{"answer", ""}, {"weights", Json::array()}}; }};
    const Aligned aligned = align(one)[0];
    const auto fields = [links = metrics::format_pharaoh(aligned.chosen()),
                         weights = aligned.weights[0].contiguous()](const char* name) {
      Json rows = Json::array();
      for (int64_t t = 0; t < weights.size(0); ++t) rows.push_back(to_floats(weights[t]));
      return Json{{name, links}, {"weights", rows}};
    };
    return {(soft ? fields("links").dump() : metrics::format_pharaoh(aligned.chosen())) + "\n",
            [fields] { return fields("answer"); }};
  });
}

std::vector<explain::Explanation> AlignmentTask::explain(Input* input) {
  Part shown;
  if (input != nullptr) {
    data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
      if (line.empty()) return;
      const auto pair = translate::split_pair(line);
      if (!pair) throw data::FileError(input->name, number, kExpectedPair);
      Part one;
      one.pairs.push_back(*pair);
      encode(one);
      check_sentences(one);
      shown.pairs.push_back(*pair);
    });
  } else {
    shown.pairs = worth_drawing(test_.pairs);
  }
  encode(shown);
  std::vector<explain::Explanation> all;
  const std::vector<Aligned> aligned = align(shown);
  std::vector<size_t> order(aligned.size());
  std::iota(order.begin(), order.end(), 0);
  if (input == nullptr) {
    constexpr size_t kShown = 3;
    const auto rank = [&](size_t i) {
      return std::pair{worth(shown.pairs[i]),
                       right_share(aligned[i].links[0], shown.pairs[i].links)};
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return rank(a) > rank(b); });
    order.resize(std::min(kShown, order.size()));
  }
  for (const size_t i : order) {
    if (aligned[i].weights[0].numel() == 0) continue;
    const AlignedPair pair{shown.pairs[i],
                           aligned[i].weights[0],
                           aligned[i].chosen(),
                           run_options_.options.text("method"),
                           run_options_.options.text("symmetrise"),
                           !generated_};
    for (explain::Explanation& e : alignment_pictures(pair)) all.push_back(std::move(e));
  }
  return all;
}

}  // namespace fovea::systems
