#include "systems/next_word/view.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "train/task.h"

namespace fovea::systems::next_word {
namespace {

constexpr int64_t kBars = 8;

explain::Explanation described(const Shown& shown, const std::string& title) {
  explain::Explanation e;
  e.system = "next-word";
  e.title = title;
  e.score = "scaled dot";
  e.normaliser = "softmax";
  e.structure = "causal";
  e.scale = shown.scale;
  e.query_label = "what comes after";
  e.key_label = "word so far";
  for (const std::string& token : shown.tokens) e.keys.push_back({.text = token});
  e.layers = {"layer", {}};
  e.heads = {"head", {}};
  for (int64_t l = 0; l < shown.weights.size(0); ++l)
    e.layers.names.push_back(std::to_string(l + 1));
  for (int64_t h = 0; h < shown.weights.size(1); ++h)
    e.heads.names.push_back(std::to_string(h + 1));
  return e;
}

void add_maps(explain::Explanation& e, const torch::Tensor& weights) {
  for (int64_t l = 0; l < weights.size(0); ++l)
    for (int64_t h = 0; h < weights.size(1); ++h)
      e.maps.push_back({static_cast<int>(l), static_cast<int>(h), to_floats(weights[l][h]), {}});
}

}  // namespace

std::vector<explain::Explanation> pictures(const Shown& shown) {
  const torch::Tensor p = shown.layers.to(torch::kDouble).softmax(-1).cpu();
  const auto [best, places] = p[-1].topk(std::min(kBars, p.size(1)));
  const auto piece = [&, places = places](int64_t i) {
    return shown.pieces[static_cast<size_t>(places[i].item<int64_t>())];
  };

  explain::Explanation blank = described(shown, "The next word, and which words decide it");
  blank.view = explain::View::kBipartite;
  blank.queries.push_back({.text = "___"});
  add_maps(blank, shown.weights.narrow(2, shown.weights.size(2) - 1, 1));
  if (shown.decides >= 0) {
    blank.truth = explain::Truth{"the word that decides", {}, {}, {}};
    blank.truth->sure.push_back({0, static_cast<int32_t>(shown.decides), 1.0f});
  }
  blank.outcome = fmt::format("{}, p = {:.2f}", piece(0), best[0].item<double>());
  explain::Table table{.title =
                           "The next word, layer by layer: its probability where the model ended "
                           "after that layer",
                       .columns = {"next word"}};
  for (int64_t l = 0; l < p.size(0); ++l) table.columns.push_back(fmt::format("layer {}", l + 1));
  explain::Curve bars{.kind = explain::Curve::Kind::kBars, .label = "probability"};
  for (int64_t i = 0; i < best.size(0); ++i) {
    std::vector<std::string> row = {piece(i)};
    for (int64_t l = 0; l < p.size(0); ++l)
      row.push_back(fmt::format("{:.3f}", p[l][places[i].item<int64_t>()].item<double>()));
    table.rows.push_back(std::move(row));
    bars.x.push_back(static_cast<double>(i + 1));
    bars.y.push_back(best[i].item<double>());
    bars.names.push_back(piece(i));
  }
  blank.tables.push_back(std::move(table));
  blank.plots.push_back({.title = "The likeliest next words",
                         .x_label = "next word",
                         .y_label = "probability",
                         .curves = {std::move(bars)}});
  blank.notes.push_back("A later layer looks at states that have already looked around.");

  explain::Explanation all = described(shown, "Where each word looked");
  all.view = explain::View::kMatrix;
  all.query_label = "reading";
  all.queries = all.keys;
  add_maps(all, shown.weights);
  return {blank, all};
}

}  // namespace fovea::systems::next_word
