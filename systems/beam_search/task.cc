#include "systems/beam_search/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "metrics/bleu.h"
#include "systems/bahdanau/model.h"
#include "systems/beam_search/view.h"
#include "systems/seq2seq/model.h"
#include "translate/pictures.h"
#include "translate/task.h"

namespace fovea::systems::beam_search {
namespace {

std::shared_ptr<translate::Model> make(const OptionValues& o,
                                       const translate::Vocabularies& vocabularies) {
  if (o.text("model") == "bahdanau") {
    return std::make_shared<BahdanauModel>(BahdanauConfig{.embedding = o.integer("embedding"),
                                                          .width = o.integer("width"),
                                                          .alignment = o.integer("width"),
                                                          .dropout = o.number("dropout")},
                                           vocabularies);
  }
  return std::make_shared<Seq2SeqModel>(Seq2SeqConfig{.embedding = o.integer("embedding"),
                                                      .width = o.integer("width"),
                                                      .dropout = o.number("dropout")},
                                        vocabularies);
}

class BeamSearchTask : public translate::TranslationTask {
 public:
  explicit BeamSearchTask(const RunOptions& run_options)
      : TranslationTask("beam-search", run_options, make) {}

  Evaluation evaluate(Split split) override {
    Evaluation result = TranslationTask::evaluate(split);
    const Found greedy = search(part(split), greedy_options(), part(split).pairs.size());
    const Found raw = search(part(split), {.beam = beam_options().beam, .length_alpha = 0},
                             part(split).pairs.size());
    const Found chosen = search(part(split), beam_options(), part(split).pairs.size());
    result.metrics["bleu_greedy"] = greedy.bleu;
    result.metrics["bleu_unnormalised"] = raw.bleu;
    result.metrics["length_ratio"] = chosen.length_ratio;
    result.metrics["length_ratio_unnormalised"] = raw.length_ratio;
    result.metrics["log_probability"] = chosen.log_probability;
    result.metrics["log_probability_greedy"] = greedy.log_probability;
    return result;
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<explain::Explanation> all;
    for (const Searched& one : input ? searched(input, kShown) : telling())
      all.push_back(picture(one));
    if (input == nullptr) {
      if (!all.empty()) all.front().notes.push_back(told_);
      const double normalised = beam_options().length_alpha;
      all.push_back(width_curves({by_width(normalised), by_width(0)},
                                 std::min(kJudged, part(Split::kTest).pairs.size())));
    }
    return all;
  }

 private:
  static constexpr size_t kShown = 3, kJudged = 150, kCandidates = 1000;
  // Tokens of a translation whose tree is seen without scrolling.
  static constexpr size_t kReadable = 14;

  static nn::BeamOptions greedy_options() { return {.beam = 1, .length_alpha = 0}; }
  std::vector<nn::SearchResult> searched_for(const std::vector<const translate::Encoded*>& sources,
                                             nn::BeamOptions options) {
    options.never = beam_options().never;
    return translate(sources, options);
  }
  std::string text_of(const nn::SearchResult& found) const {
    return found.n_best.empty() ? "" : target_codec().decode(found.n_best[0].tokens);
  }

  explain::Explanation picture(const Searched& one) {
    nn::BeamOptions options = greedy_options();
    options.keep_tree = true;
    const nn::SearchResult greedy = searched_for({&one.source}, options)[0];
    const std::string said = text_of(greedy), &right = one.pair.target;
    const auto verdict = [&](const std::string& answer) {
      return right.empty() ? "" : answer == right ? " (right)" : " (wrong)";
    };
    std::string outcome = fmt::format(
        "“{}”\nbeam of {}: {}{}\ngreedy search: {}{}", one.pair.source, beam_options().beam,
        one.said, verdict(one.said), said == one.said ? "the same" : said, verdict(said));
    if (!right.empty() && one.said != right && said != right) outcome += "\nright: " + right;
    return with_greedy(translate::beam_picture(context(), one.result, outcome), one.result, greedy,
                       target_codec());
  }

  // First what the beam translates right and greedy search does not, short sentences and large
  // gains in probability before others; last what the beam translates wrong, and greedy search right
  // if there is such a one.
  std::vector<Searched> telling() {
    const Part& test = part(Split::kTest);
    std::vector<size_t> order(std::min(kCandidates, test.pairs.size()));
    std::iota(order.begin(), order.end(), 0);
    std::vector<const translate::Encoded*> sources;
    for (const size_t i : order) sources.push_back(&test.tokens[i].source);
    const auto beam = searched_for(sources, beam_options());
    const auto greedy = searched_for(sources, greedy_options());
    const auto right = [&](const std::vector<nn::SearchResult>& found, size_t i) {
      return text_of(found[i]) == test.pairs[i].target;
    };
    const auto gain = [&](size_t i) {
      return beam[i].n_best.empty() || greedy[i].n_best.empty()
                 ? 0
                 : beam[i].n_best[0].log_probability - greedy[i].n_best[0].log_probability;
    };
    const auto rank = [&](size_t i) {
      return std::tuple{right(beam, i) && !right(greedy, i), right(beam, i),
                        test.tokens[i].target.ids.size() <= kReadable, gain(i)};
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return rank(a) > rank(b); });
    const auto missed = [&](size_t i) { return !right(beam, i) && right(greedy, i); };
    told_ = fmt::format(
        "Of {} test sentences, a beam of {} translates {} right that greedy search translates "
        "wrong, and {} wrong that greedy search translates right.",
        order.size(), beam_options().beam,
        std::count_if(order.begin(), order.end(),
                      [&](size_t i) { return right(beam, i) && !right(greedy, i); }),
        std::count_if(order.begin(), order.end(), missed));
    const auto kept = static_cast<std::ptrdiff_t>(std::min(kShown, order.size()));
    auto wrong = std::find_if(order.begin(), order.end(), missed);
    if (wrong == order.end())
      wrong = std::find_if(order.begin(), order.end(), [&](size_t i) { return !right(beam, i); });
    if (kept > 1 && wrong != order.end() && wrong - order.begin() >= kept)
      std::iter_swap(order.begin() + kept - 1, wrong);
    order.resize(static_cast<size_t>(kept));
    nn::BeamOptions options = beam_options();
    options.keep_tree = true;
    std::vector<Searched> out;
    for (const size_t i : order) {
      const translate::Encoded& source = test.tokens[i].source;
      out.push_back({test.pairs[i], source, searched_for({&source}, options)[0], ""});
      out.back().said = text_of(out.back().result);
    }
    return out;
  }

  Found search(const Part& p, nn::BeamOptions options, size_t most) {
    options.never = beam_options().never;
    std::vector<const translate::Encoded*> sources;
    std::vector<std::string> said;
    std::vector<std::vector<std::string>> references(1);
    const size_t count = std::min(most, p.pairs.size());
    for (size_t i = 0; i < count; ++i) {
      sources.push_back(&p.tokens[i].source);
      references[0].push_back(p.pairs[i].target);
    }
    Found out;
    double written = 0, expected = 0;
    const std::vector<nn::SearchResult> found = translate_together(sources, options);
    for (size_t i = 0; i < count; ++i) {
      said.push_back(text_of(found[i]));
      written +=
          found[i].n_best.empty() ? 0 : static_cast<double>(found[i].n_best[0].tokens.size());
      expected += static_cast<double>(p.tokens[i].target.ids.size() + 1);
      out.log_probability += (found[i].n_best.empty() ? 0 : found[i].n_best[0].log_probability) /
                             static_cast<double>(count);
    }
    out.bleu = metrics::corpus_bleu(said, references, {}).score;
    out.length_ratio = written / expected;
    return out;
  }

  ByWidth by_width(double alpha) {
    ByWidth out{.alpha = alpha};
    for (const int64_t width : {1, 2, 4, 8, 16}) {
      out.widths.push_back(static_cast<double>(width));
      out.found.push_back(
          search(part(Split::kTest), {.beam = width, .length_alpha = alpha}, kJudged));
    }
    return out;
  }

  std::string told_;  // how often the beam and greedy search differ
};

}  // namespace

std::unique_ptr<Task> make_beam_search(const RunOptions& run_options) {
  return std::make_unique<BeamSearchTask>(run_options);
}

}  // namespace fovea::systems::beam_search
