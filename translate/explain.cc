// What a translation system shows: attention, the beam, and its score against the length of
// sentences.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <numeric>

#include "data/files/file.h"
#include "data/files/json.h"
#include "metrics/bleu.h"
#include "translate/pictures.h"
#include "translate/task.h"

namespace fovea::translate {

std::vector<TranslationTask::Searched> TranslationTask::searched(Input* input, size_t most) {
  std::vector<Searched> out;
  if (input != nullptr) {
    data::each_line(input->stream, input->name, [&](size_t, std::string_view line) {
      if (!line.empty()) out.push_back({{std::string(line), "", {}}, {}, {}, ""});
    });
  } else {
    for (size_t i = 0; i < std::min(most, test_.pairs.size()); ++i)
      out.push_back({test_.pairs[i], {}, {}, ""});
  }
  nn::BeamOptions options = beam_options();
  options.keep_tree = true;
  for (Searched& one : out) {
    one.source = read_source(one.pair.source);
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
    // The truth speaks of the reference: it is shown where the model said the same.
    const Pair shown{one.pair.source, one.said,
                     one.said == one.pair.target ? one.pair.links : metrics::GoldLinks{}};
    const at::NoGradGuard no_grad;
    const size_t first = all.size();
    for (const AttentionMaps& maps : model_->maps(make_batch({&tokens}, run_options_.device))) {
      all.push_back(attention_picture(context(), maps, tokens, shown));
    }
    const std::vector<std::string> unknown = source_codec_->unknown(prepared(one.pair.source));
    if (!unknown.empty())
      for (size_t i = first; i < all.size(); ++i)
        all[i].notes.push_back("Never seen in training: " + data::listed(unknown) + ".");
    if (one.result.tree.size() > 1) all.push_back(beam_picture(context(), one.result, one.said));
  }
  if (input == nullptr && !test_.pairs.empty()) all.push_back(length_curve());
  if (more_ && !all.empty()) {
    for (explain::Explanation& e : more_(*model_, run_options_.options))
      all.push_back(std::move(e));
  }
  return all;
}

namespace {

constexpr const char* kLengthTitle = "Score against the length of the source";

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

// BLEU and exact answers in groups of like length: a decoder that sees only the last state falls
// with it, one that attends does not.
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
        "The bottleneck control is seq2seq: train it on the same data, explain it to a .json file "
        "and give that as control=FILE.");
  } else {
    for (explain::Curve& curve : curves_of(control)) e.plots[0].curves.push_back(std::move(curve));
  }
  return e;
}

}  // namespace fovea::translate
