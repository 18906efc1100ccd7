#include "systems/stacked_attention/view.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>

#include "explain/capture.h"
#include "train/task.h"

namespace fovea::systems::stacked_attention {
namespace {

// exp of the entropy: the number of regions over which the weights spread.
double spread(const std::vector<float>& weights) {
  double entropy = 0;
  for (const double w : weights)
    if (w > 0) entropy -= w * std::log(w);
  return std::exp(entropy);
}

}  // namespace

explain::Explanation picture(const Shown& shown, const Look& look) {
  explain::Explanation out;
  out.title = shown.question;
  out.view = explain::View::kImage;
  explain::label(out, look.choices.front(), {}, look.key.front().size(3));
  out.query_label = "hop";
  out.key_label = "region";
  out.outcome = fmt::format("{}, p = {:.3f}", shown.answer, shown.probability);
  if (!shown.expected.empty())
    out.outcome += shown.expected == shown.answer ? ", which is right"
                                                  : fmt::format("; right: {}", shown.expected);
  const int side = static_cast<int>(shown.side);
  out.picture = explain::Picture{side, side, 3, shown.pixels};
  const double share = 1 / static_cast<double>(shown.grid);
  for (int64_t cell = 0; cell < shown.grid * shown.grid; ++cell) {
    const int64_t row = cell / shown.grid, column = cell % shown.grid;
    explain::Item& item = out.keys.emplace_back();
    item.text = fmt::format("row {}, column {}", row + 1, column + 1);
    item.position = {static_cast<double>(column) * share, static_cast<double>(row) * share, share,
                     share};
  }
  auto& dense = out.maps.emplace_back().dense;
  explain::Truth truth{.label = "the region that this hop has to find"};
  std::string spreads;
  for (size_t hop = 0; hop < look.query.size(); ++hop) {
    out.queries.emplace_back().text = fmt::format("hop {}", hop + 1);
    const std::vector<float> row = to_floats(Model::weights_of(look, hop));
    spreads += fmt::format("{}{:.1f} in hop {}", hop ? ", " : "", spread(row), hop + 1);
    dense.insert(dense.end(), row.begin(), row.end());
    if (hop < shown.cells.size() && shown.cells[hop] >= 0)
      truth.sure.push_back({static_cast<int32_t>(hop), static_cast<int32_t>(shown.cells[hop]), 1});
  }
  if (!truth.sure.empty()) out.truth = std::move(truth);
  out.notes.push_back(
      fmt::format("The weights spread over {} regions (exp of their entropy).", spreads));
  return out;
}

}  // namespace fovea::systems::stacked_attention
