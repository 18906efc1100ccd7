#include "systems/beam_search/view.h"

#include <fmt/format.h>

namespace fovea::systems::beam_search {

explain::Explanation width_curves(const std::vector<ByWidth>& all, size_t sentences) {
  explain::Explanation e;
  e.system = "beam-search";
  e.title = "What a wider beam does";
  e.view = explain::View::kCurve;
  e.score = "log P(y) / ((5 + |y|) / 6)^α";
  e.normaliser = "top k";
  e.structure = "the beam";
  e.scale = "log-probability";
  explain::Plot bleu{.title = "BLEU", .x_label = "beam width", .y_label = "BLEU", .log_x = true};
  explain::Plot length{.title = "Length",
                       .x_label = "beam width",
                       .y_label = "tokens written / tokens expected",
                       .log_x = true};
  explain::Plot probability{.title = "What it searches for",
                            .x_label = "beam width",
                            .y_label = "mean log P(y)",
                            .log_x = true};
  for (const ByWidth& one : all) {
    const std::string label =
        one.alpha == 0 ? "α = 0: raw log-probability" : fmt::format("α = {}", one.alpha);
    explain::Curve b{.label = label, .x = one.widths}, l = b, p = b;
    for (const Found& found : one.found) {
      b.y.push_back(found.bleu);
      l.y.push_back(found.length_ratio);
      p.y.push_back(found.log_probability);
    }
    bleu.curves.push_back(b);
    length.curves.push_back(l);
    probability.curves.push_back(p);
  }
  e.plots = {bleu, length, probability};
  e.notes.push_back(
      fmt::format("{} sentences of the test split. A beam of one is greedy search.", sentences));
  return e;
}

}  // namespace fovea::systems::beam_search
