#include "systems/general/view.h"

#include <fmt/format.h>

#include "train/task.h"

namespace fovea::systems::general {

explain::Explanation picture(const Model& model, const Memory& memory,
                             const torch::Tensor& weights, const std::string& structure) {
  const auto n = static_cast<int64_t>(memory.asked.size()),
             m = static_cast<int64_t>(memory.keys.size()) / kKey;
  explain::Explanation out;
  out.title =
      fmt::format("Looking up {} of {} pairs: {} score, {}", n, m, model.score, model.normaliser);
  out.view = explain::View::kBipartite;
  out.score = model.score;
  out.normaliser = model.normaliser;
  out.structure = structure == "all"      ? "all pairs of the memory (ragged batch)"
                  : structure == "causal" ? "causal: pairs up to the query's own place"
                                          : "window: pairs at most two places away";
  out.scale = model.score == "dot" ? fmt::format("1/√{}", kInner) : "1";
  for (int64_t i = 0; i < n; ++i) out.queries.emplace_back().text = fmt::format("query {}", i + 1);
  for (int64_t j = 0; j < m; ++j) out.keys.emplace_back().text = fmt::format("key {}", j + 1);
  out.maps.emplace_back().dense = to_floats(weights);
  explain::Truth truth;
  truth.label = "the pair asked for";
  int64_t unseen = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t pair = memory.asked[static_cast<size_t>(i)];
    if (sees(structure, i, pair))
      truth.sure.push_back({static_cast<int32_t>(i), static_cast<int32_t>(pair), 1});
    else
      ++unseen;
  }
  out.truth = truth;
  if (unseen > 0)
    out.notes.push_back(fmt::format(
        "{} of {} queries ask for a pair that the structure hides from them: no weight can lie "
        "there.",
        unseen, n));
  explain::Shapes shapes;
  shapes.query = fmt::format("{} × {}", n, kInner);
  shapes.key = fmt::format("{} × {}", m, kInner);
  shapes.value = fmt::format("{} × {}", m, kValue);
  shapes.weights = fmt::format("{} × {}", n, m);
  shapes.output = fmt::format("{} × {}", n, kValue);
  out.shapes = shapes;
  return out;
}

}  // namespace fovea::systems::general
