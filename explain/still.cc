#include "explain/still.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/files/file.h"
#include "explain/drawing/views.h"
#include "fovea/error.h"

namespace fovea::explain {
namespace {

constexpr size_t kMost = 16;  // queries or keys a panel can show with words that are read

bool has_shown_map(const Explanation& explanation) {
  return std::any_of(explanation.maps.begin(), explanation.maps.end(), [&](const Map& map) {
    return map.layer == explanation.layers.chosen && map.head == explanation.heads.chosen &&
           !map.dense.empty();
  });
}

drawing::Piece panel(const Explanation& explanation) {
  const drawing::Piece map = drawing::heat_map(explanation);
  const std::string& truth = explanation.truth->label;
  const double width = std::max(map.width, 240.0);
  return drawing::stacked(
      {drawing::paragraph(explanation.title, width, "title"), map,
       drawing::paragraph(
           fmt::format("{}: {}, {}; outlined: {}", explanation.system, explanation.score,
                       explanation.normaliser, truth.substr(0, truth.find(':'))),
           width, "label")});
}

}  // namespace

bool is_still(const Explanation& explanation) {
  const bool words = explanation.view == View::kMatrix || explanation.view == View::kBipartite;
  const auto few = [](const std::vector<Item>& items) {
    return items.size() > 1 && items.size() <= kMost;
  };
  return words && few(explanation.queries) && few(explanation.keys) && explanation.truth &&
         !explanation.truth->sure.empty() && has_shown_map(explanation);
}

std::string still_svg(const std::vector<Explanation>& panels) {
  std::vector<drawing::Piece> drawn;
  for (const Explanation& one : panels) {
    if (!is_still(one))
      throw InvalidArgument(
          fmt::format("panels: {} cannot be a still picture, expected few words and a known truth",
                      data::shown(one.title)));
    drawn.push_back(panel(one));
  }
  return drawing::document(drawing::beside(drawn));
}

}  // namespace fovea::explain
