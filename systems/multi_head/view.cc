#include "systems/multi_head/view.h"

#include <fmt/format.h>

#include "train/task.h"

namespace fovea::systems::multi_head {

std::vector<explain::Explanation> pictures(const Shown& shown) {
  explain::Explanation e;
  e.system = "multi-head";
  e.title = "One query, every head: who did what to whom?";
  e.view = explain::View::kBipartite;
  e.score = shown.mix == "heads" ? "scaled dot" : "constant";
  e.normaliser = shown.mix == "heads" ? "softmax" : "uniform";
  e.structure = shown.mix == "convolution" ? "the sentence, after a convolution over three words"
                                           : "the sentence";
  e.scale = shown.mix == "heads" ? shown.scale : "1";
  e.outcome = shown.outcome;
  e.query_label = "question";
  e.key_label = "word";
  e.queries.push_back({.text = "who did what to whom?"});
  for (const std::string& word : shown.sentence.words) e.keys.push_back({.text = word});
  e.heads = {"head", {}};
  for (int64_t h = 0; h < shown.weights.size(0); ++h) {
    std::string name = std::to_string(h + 1);
    for (size_t s = 0; s < 3; ++s)
      if (shown.heads[s] == h) name += fmt::format(" ({})", kSlots[s]);
    e.heads.names.push_back(name);
    e.maps.push_back({0, static_cast<int>(h), to_floats(shown.weights[h]), {}});
  }
  e.notes.push_back(
      "A suffix says who acts (-a) and who is acted on (-o). Each head is its own picture: their "
      "mean would show three words in equal "
      "shares and hide which answers what.");
  explain::Explanation rows = e;
  rows.title = "Each question by the head that answers it";
  rows.view = explain::View::kMatrix;
  rows.queries.clear();
  rows.maps.clear();
  rows.heads = {"head", {"the question's own"}};
  explain::Map map;
  for (size_t s = 0; s < 3; ++s) {
    rows.queries.push_back({.text = kSlots[s]});
    const std::vector<float> row = to_floats(shown.weights[shown.heads[s]]);
    map.dense.insert(map.dense.end(), row.begin(), row.end());
    if (shown.sentence.places[s] >= 0) {
      if (!rows.truth) rows.truth = explain::Truth{"the word that answers", {}, {}, {}};
      rows.truth->sure.push_back(
          {static_cast<int32_t>(s), static_cast<int32_t>(shown.sentence.places[s]), 1.0f});
    }
  }
  rows.maps.push_back(std::move(map));
  return {e, rows};
}

}  // namespace fovea::systems::multi_head
