#include "systems/bert/view.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>

#include "train/task.h"

namespace fovea::systems::bert {
namespace {

constexpr int64_t kBars = 8;

explain::Explanation described(Start& start, const Sequence& sequence, const std::string& title) {
  const nn::BertOptions& sizes = start.sizes();
  explain::Explanation e;
  e.system = "bert";
  e.title = title;
  e.score = "scaled dot";
  e.normaliser = "softmax";
  e.structure = "whole sequence";
  e.scale = fmt::format("1/√{}", sizes.width / sizes.heads);
  e.query_label = e.key_label = "token";
  for (const int64_t id : sequence.ids) e.keys.push_back({.text = start.pieces().piece(id)});
  e.layers = {"layer", {}};
  e.heads = {"head", {}};
  for (int64_t l = 0; l < sizes.layers; ++l) e.layers.names.push_back(std::to_string(l + 1));
  for (int64_t h = 0; h < sizes.heads; ++h) e.heads.names.push_back(std::to_string(h + 1));
  return e;
}

void add_maps(explain::Explanation& e, const torch::Tensor& weights) {
  for (int64_t l = 0; l < weights.size(0); ++l)
    for (int64_t h = 0; h < weights.size(1); ++h)
      e.maps.push_back({static_cast<int>(l), static_cast<int>(h), to_floats(weights[l][h]), {}});
}

torch::Tensor weights_of(Start& start, const Sequence& sequence) {
  return start.model()->encoder->weights(packed(sequence, start.device())).cpu();
}

}  // namespace

explain::Explanation head_maps(Start& start, const Sequence& sequence, const std::string& title,
                               const std::string& outcome) {
  explain::Explanation e = described(start, sequence, title);
  e.view = explain::View::kMatrix;
  e.queries = e.keys;
  e.outcome = outcome;
  add_maps(e, weights_of(start, sequence));
  return e;
}

explain::Explanation fill_bars(Start& start, const Sequence& sequence, const std::string& title) {
  const auto all = guesses(start, sequence, kBars);
  explain::Explanation e = described(start, sequence, title);
  e.view = explain::View::kBipartite;
  e.query_label = "place to fill";
  const std::vector<int64_t> places = places_to_fill(start, sequence);
  for (size_t i = 0; i < places.size(); ++i) {
    e.queries.push_back({.text = fmt::format("[MASK] {}", i + 1)});
    explain::Curve bars{.kind = explain::Curve::Kind::kBars, .label = "probability"};
    explain::Table table{.title = fmt::format("The likeliest words for [MASK] {}", i + 1),
                         .columns = {"word", "probability"}};
    for (size_t k = 0; k < all[i].size(); ++k) {
      bars.x.push_back(static_cast<double>(k + 1));
      bars.y.push_back(all[i][k].probability);
      bars.names.push_back(start.pieces().piece(all[i][k].piece));
      table.rows.push_back(
          {start.pieces().piece(all[i][k].piece), fmt::format("{:.3f}", all[i][k].probability)});
    }
    e.plots.push_back({.title = fmt::format("The likeliest words for [MASK] {}", i + 1),
                       .x_label = "word",
                       .y_label = "probability",
                       .curves = {std::move(bars)}});
    e.tables.push_back(std::move(table));
    if (!all[i].empty())
      e.outcome += fmt::format("{}{}, p = {:.2f}", i == 0 ? "" : "; ",
                               start.pieces().piece(all[i][0].piece), all[i][0].probability);
  }
  add_maps(e, weights_of(start, sequence).index_select(2, torch::tensor(places, torch::kLong)));
  return e;
}

std::vector<explain::Explanation> pictures(Start& start, const Sequence& sequence,
                                           const std::string& title, const std::string& outcome) {
  std::vector<explain::Explanation> out;
  const auto mask = start.pieces().find("[MASK]");
  if (start.model()->heads().fill && mask &&
      std::find(sequence.ids.begin(), sequence.ids.end(), *mask) != sequence.ids.end())
    out.push_back(fill_bars(start, sequence, title + ": which word is it?"));
  out.push_back(head_maps(start, sequence, title + ": every head", outcome));
  return out;
}

}  // namespace fovea::systems::bert
