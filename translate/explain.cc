// What a translation system shows: attention, the beam, and its score against the length of
// sentences.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <numeric>
#include <tuple>

#include "data/files/file.h"
#include "data/files/json.h"
#include "metrics/bleu.h"
#include "translate/pictures.h"
#include "translate/task.h"

namespace fovea::translate {

namespace {

// How many pairs of links cross: words that change places.
size_t crossings(const metrics::GoldLinks& links) {
  size_t n = 0;
  for (const metrics::Link& a : links.possible)
    for (const metrics::Link& b : links.possible) n += a.source < b.source && a.target > b.target;
  return n;
}

// Short enough that its words can be read in a lecture.
constexpr size_t kReadable = 14;
// Of the weights: more than on all other words together.
constexpr double kMostOfIt = 0.5;
// Sentences in five groups by their length: fewer say nothing about it.
constexpr size_t kFewestForLengths = 20;

}  // namespace

// The mean share of the weights of each linked target token that lies on its links; where no links
// are known, the mean of each token's largest weight. 0 without attention.
double TranslationTask::clarity(size_t i) {
  const Tokens& tokens = test_.tokens[i];
  const metrics::Links& links = test_.pairs[i].links.possible;
  if (tokens.source.ids.empty() || tokens.target.ids.empty()) return 0;
  const at::NoGradGuard no_grad;
  const at::Tensor rows = model_->alignment(make_batch({&tokens}, run_options_.device));
  if (!rows.defined()) return 0;
  if (links.empty()) return rows[0].amax(-1).mean().item<double>();
  double sum = 0;
  size_t linked = 0;
  for (size_t t = 0; t < tokens.target.words.size(); ++t) {
    bool any = false;
    for (size_t s = 0; s < tokens.source.words.size(); ++s) {
      if (!links.contains({tokens.source.words[s], tokens.target.words[t]})) continue;
      any = true;
      sum += rows[0][static_cast<int64_t>(t)][static_cast<int64_t>(s)].item<double>();
    }
    linked += any;
  }
  return linked == 0 ? 0 : sum / static_cast<double>(linked);
}

// Pairs from the first part of the test split that show most: right answers of readable length, most
// of whose weight lies on the true links (where none are known: on one word each), and whose words
// change places; and last a wrong one, if there is any.
std::vector<size_t> TranslationTask::telling(size_t most) {
  constexpr size_t kCandidates = 40;
  std::vector<size_t> order(std::min(kCandidates, test_.pairs.size()));
  std::iota(order.begin(), order.end(), 0);
  std::vector<const Encoded*> sources;
  for (const size_t i : order) sources.push_back(&test_.tokens[i].source);
  const std::vector<nn::SearchResult> found = translate(sources, beam_options());
  const auto right = [&](size_t i) {
    return !found[i].n_best.empty() &&
           target_codec_->decode(found[i].n_best[0].tokens) == test_.pairs[i].target;
  };
  std::vector<double> shares;
  for (const size_t i : order) shares.push_back(clarity(i));
  const auto rank = [&](size_t i) {
    return std::tuple{right(i), test_.tokens[i].target.ids.size() <= kReadable,
                      shares[i] > kMostOfIt, crossings(test_.pairs[i].links), shares[i]};
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rank(a) > rank(b); });
  const auto wrong = std::find_if_not(order.begin(), order.end(), right);
  if (most > 1 && order.size() > most && wrong != order.end() &&
      wrong - order.begin() >= static_cast<ptrdiff_t>(most))
    std::iter_swap(order.begin() + static_cast<ptrdiff_t>(most) - 1, wrong);
  order.resize(std::min(most, order.size()));
  return order;
}

std::vector<TranslationTask::Searched> TranslationTask::searched(Input* input, size_t most) {
  std::vector<Searched> out;
  if (input != nullptr) {
    data::each_line(input->stream, input->name, [&](size_t, std::string_view line) {
      if (line.empty()) return;
      out.push_back({{std::string(line), "", {}}, {}, {}, ""});
      out.back().source = read_source(out.back().pair.source);
    });
  } else {
    for (const size_t i : telling(most)) {
      out.push_back({test_.pairs[i], {}, {}, ""});
      out.back().source = read_source(test_.pairs[i].source);
    }
  }
  nn::BeamOptions options = beam_options();
  options.keep_tree = true;
  for (Searched& one : out) {
    one.result = translate({&one.source}, options)[0];
    one.said = one.result.n_best.empty() ? "" : target_codec_->decode(one.result.n_best[0].tokens);
  }
  return out;
}

std::vector<explain::Explanation> TranslationTask::explain(Input* input) {
  constexpr size_t kShown = 3;
  std::vector<explain::Explanation> all;
  for (const Searched& one : searched(input, kShown)) {
    const Tokens tokens{one.source, target_codec_->encode(one.said)};
    if (tokens.source.ids.empty() || tokens.target.ids.empty()) continue;
    // The true links are those of the reference: they are shown if the model's answer is the same.
    const Pair shown{one.pair.source, one.said,
                     one.said == one.pair.target ? one.pair.links : metrics::GoldLinks{}};
    const at::NoGradGuard no_grad;
    const size_t first = all.size();
    for (const AttentionMaps& maps : model_->maps(make_batch({&tokens}, run_options_.device))) {
      all.push_back(attention_picture(context(), maps, tokens, shown));
      all.back().outcome = outcome_of(one.said, one.pair);
    }
    if (first == 0 && all.size() > first)  // one pair's steps are enough
      if (const auto steps = model_->steps(make_batch({&tokens}, run_options_.device)))
        all.push_back(step_picture(context(), *steps, all[first]));
    const std::vector<std::string> unknown = source_codec_->unknown(prepared(one.pair.source));
    if (!unknown.empty())
      for (size_t i = first; i < all.size(); ++i)
        all[i].notes.push_back("Never seen in training: " + data::listed(unknown) + ".");
    if (one.result.tree.size() > 1)
      all.push_back(beam_picture(context(), one.result, outcome_of(one.said, one.pair)));
  }
  // Without attention there is no picture of it: the curve over lengths comes first.
  const bool attends =
      std::any_of(all.begin(), all.end(), [](const auto& e) { return !e.maps.empty(); });
  if (input == nullptr && test_.pairs.size() >= kFewestForLengths)
    all.insert(attends ? all.end() : all.begin(), length_curve());
  if (more_ && !all.empty()) {
    for (explain::Explanation& e : more_(*model_, run_options_.options))
      all.push_back(std::move(e));
  }
  return all;
}

namespace {

// The curves of another run, from the explanation that `fovea explain --out FILE.json` wrote of it.
std::vector<explain::Curve> curves_of(const std::string& path) {
  const Json read = data::parse_json(data::read_file(path), path);
  std::vector<explain::Curve> curves;
  for (const Json& one : read.is_object() ? Json::array({read}) : read) {
    const explain::Explanation e = explain::from_json(one.dump(), path);
    if (e.title != kLengthTitle || e.plots.empty()) continue;
    for (explain::Curve curve : e.plots.at(0).curves) {
      curve.label = e.system + ": " + curve.label;
      curves.push_back(std::move(curve));
    }
  }
  if (curves.empty()) {
    throw InvalidArgument("control: " + path +
                          ": no picture of score against length, expected what `fovea explain RUN "
                          "--out FILE.json` writes of a translation run");
  }
  return curves;
}

}  // namespace

// BLEU and exact answers in groups of similar length: they fall with the length for a decoder that
// sees only the last state, and not for one that attends.
explain::Explanation TranslationTask::length_curve() {
  constexpr size_t kJudged = 400, kGroups = 5;
  std::vector<size_t> order(std::min(kJudged, test_.pairs.size()));
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](size_t i) { return test_.tokens[i].source.ids.size(); };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return length(a) < length(b); });
  std::vector<const Encoded*> sources;
  for (const size_t i : order) sources.push_back(&test_.tokens[i].source);
  const std::vector<nn::SearchResult> found = translate(sources, beam_options());
  explain::Curve bleu{.label = "BLEU"}, exact{.label = "exact, per cent"};
  for (size_t g = 0; g < kGroups; ++g) {
    const size_t from = g * order.size() / kGroups, to = (g + 1) * order.size() / kGroups;
    if (from == to) continue;
    std::vector<std::string> said;
    std::vector<std::vector<std::string>> references(1);
    double words = 0, same = 0;
    for (size_t k = from; k < to; ++k) {
      said.push_back(found[k].n_best.empty() ? ""
                                             : target_codec_->decode(found[k].n_best[0].tokens));
      references[0].push_back(test_.pairs[order[k]].target);
      words += static_cast<double>(length(order[k])) / static_cast<double>(to - from);
      same += said.back() == references[0].back();
    }
    bleu.x.push_back(words);
    bleu.y.push_back(metrics::corpus_bleu(said, references, {}).score);
    exact.x.push_back(words);
    exact.y.push_back(100 * same / static_cast<double>(to - from));
  }
  explain::Explanation e;
  e.system = system_;
  e.title = kLengthTitle;
  e.view = explain::View::kCurve;
  e.score = "log-probability";
  e.normaliser = "beam";
  e.structure = "the test split, in five groups of like length";
  e.scale = "per cent";
  e.plots.push_back({.title = "Longer sentences",
                     .x_label = "source tokens",
                     .y_label = "score",
                     .curves = {bleu, exact}});
  const std::string control = run_options_.options.text("control");
  e.notes.push_back(fmt::format("{} sentences.", order.size()));
  if (control.empty()) {
    e.notes.push_back(
        "Another run on the same data stands beside it with control=FILE.json, which fovea explain "
        "wrote of that run: seq2seq has no attention, bahdanau has.");
  } else {
    for (explain::Curve& curve : curves_of(control)) e.plots[0].curves.push_back(std::move(curve));
  }
  return e;
}

}  // namespace fovea::translate
