#include "systems/beam_search/view.h"

#include <fmt/format.h>

#include <algorithm>

namespace fovea::systems::beam_search {

explain::Explanation with_greedy(explain::Explanation picture, const nn::SearchResult& found,
                                 const nn::SearchResult& greedy, const translate::Codec& target) {
  using State = explain::TreeNode::State;
  std::vector<explain::TreeNode>& tree = picture.tree;
  std::vector<bool> to_best(tree.size(), false);
  for (size_t i = tree.size(); i-- > 0;) {
    if (tree[i].state == State::kBest) to_best[i] = true;
    if (to_best[i] && tree[i].parent >= 0) to_best[static_cast<size_t>(tree[i].parent)] = true;
  }
  int64_t at = 0;
  for (const nn::BeamNode& step : greedy.tree) {
    if (step.parent < 0 || step.fate == nn::BeamNode::Fate::kPruned) continue;
    const auto same = std::find_if(
        found.tree.begin(), found.tree.end(),
        [&](const nn::BeamNode& node) { return node.parent == at && node.token == step.token; });
    if (same == found.tree.end()) {
      tree.push_back(
          {static_cast<int>(at), target.piece(step.token), step.log_probability, State::kGreedy});
      at = static_cast<int64_t>(tree.size()) - 1;
      continue;
    }
    at = same - found.tree.begin();
    if (!to_best[static_cast<size_t>(at)]) tree[static_cast<size_t>(at)].state = State::kGreedy;
  }
  return picture;
}

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
