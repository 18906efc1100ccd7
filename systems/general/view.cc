#include "systems/general/view.h"

#include <fmt/format.h>

#include <array>

#include "train/task.h"

namespace fovea::systems::general {
namespace {

constexpr std::array kCapitals = {
    "Peru: Lima",     "Kenya: Nairobi",  "Japan: Tokyo",  "Norway: Oslo",    "Egypt: Cairo",
    "Cuba: Havana",   "Italy: Rome",     "Ghana: Accra",  "Chile: Santiago", "Nepal: Kathmandu",
    "Canada: Ottawa", "Greece: Athens",  "Latvia: Riga",  "Fiji: Suva",      "Senegal: Dakar",
    "Vietnam: Hanoi", "Ireland: Dublin", "Jordan: Amman", "Bolivia: Sucre",  "Poland: Warsaw"};

// Generated vectors stand for nothing; with names one sees what is asked for.
void name_by_capitals(explain::Explanation& out, const Memory& memory) {
  if (out.keys.size() > kCapitals.size()) return;
  const auto name = [](size_t pair) { return std::string(kCapitals.at(pair)); };
  for (size_t j = 0; j < out.keys.size(); ++j) out.keys[j].text = name(j);
  for (size_t i = 0; i < out.queries.size(); ++i) {
    const std::string pair = name(static_cast<size_t>(memory.asked[i]));
    out.queries[i].text = pair.substr(0, pair.find(':')) + "?";
  }
  out.key_label = "key: value";
  out.notes.push_back(
      "The names are labels: keys and values are random vectors, and a query is a noisy copy of "
      "its key.");
}

}  // namespace

explain::Explanation picture(const Model& model, const Memory& memory, const torch::Tensor& weights,
                             const std::string& structure, Names names) {
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
  if (names == Names::kCapitals) name_by_capitals(out, memory);
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
