#include "systems/general/view.h"

#include <fmt/format.h>

#include "train/task.h"

namespace fovea::systems::general {

explain::Explanation picture(const Model& model, const Memory& memory,
                             const torch::Tensor& weights) {
  const auto n = static_cast<int64_t>(memory.asked.size()),
             m = static_cast<int64_t>(memory.keys.size()) / kKey;
  explain::Explanation out;
  out.title =
      fmt::format("Looking up {} of {} pairs: {} score, {}", n, m, model.score, model.normaliser);
  out.view = explain::View::kBipartite;
  out.score = model.score;
  out.normaliser = model.normaliser;
  out.structure = "ragged batch";
  out.scale = model.score == "dot" ? fmt::format("1/√{}", kInner) : "1";
  for (int64_t i = 0; i < n; ++i) out.queries.emplace_back().text = fmt::format("query {}", i + 1);
  for (int64_t j = 0; j < m; ++j) out.keys.emplace_back().text = fmt::format("key {}", j + 1);
  out.maps.emplace_back().dense = to_floats(weights);
  explain::Truth truth;
  truth.label = "the pair asked for";
  for (int64_t i = 0; i < n; ++i)
    truth.sure.push_back(
        {static_cast<int32_t>(i), static_cast<int32_t>(memory.asked[static_cast<size_t>(i)]), 1});
  out.truth = truth;
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
