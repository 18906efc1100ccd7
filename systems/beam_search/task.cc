#include "systems/beam_search/task.h"

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
    const Found greedy =
        search(part(split), {.beam = 1, .length_alpha = 0}, part(split).pairs.size());
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
    for (const Searched& one : searched(input, kShown))
      all.push_back(beam_picture(context(), one.result, translate::outcome_of(one.said, one.pair)));
    if (input == nullptr) {
      const double normalised = beam_options().length_alpha;
      all.push_back(width_curves({by_width(normalised), by_width(0)},
                                 std::min(kJudged, part(Split::kTest).pairs.size())));
    }
    return all;
  }

 private:
  static constexpr size_t kShown = 3, kJudged = 150;
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
      said.push_back(found[i].n_best.empty() ? ""
                                             : target_codec().decode(found[i].n_best[0].tokens));
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
};

}  // namespace

std::unique_ptr<Task> make_beam_search(const RunOptions& run_options) {
  return std::make_unique<BeamSearchTask>(run_options);
}

}  // namespace fovea::systems::beam_search
