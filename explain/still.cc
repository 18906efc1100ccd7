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

size_t letters(const std::string& text) {  // code points, not bytes
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

double longest(const std::vector<Item>& items) {
  size_t most = 1;
  for (const Item& item : items) most = std::max(most, letters(item.text));
  return kLetter * static_cast<double>(most) + 8;
}

std::string colour(float weight) {  // white to deep blue
  const double t = std::clamp(static_cast<double>(weight), 0.0, 1.0);
  return fmt::format("#{:02x}{:02x}{:02x}", static_cast<int>(246 - 224 * t),
                     static_cast<int>(249 - 180 * t), static_cast<int>(253 - 97 * t));
}

struct Size {
  double left, top, width, height;  // left and top: space for the words
};

Size size_of(const Explanation& explanation) {
  Size size{.left = longest(explanation.queries),
            .top = longest(explanation.keys) + kTitle,
            .width = 0,
            .height = 0};
  const double caption = kLetter * static_cast<double>(letters(explanation.title)) + 8;
  size.width = std::max(size.left + kCell * static_cast<double>(explanation.keys.size()), caption);
  size.height = size.top + kCell * static_cast<double>(explanation.queries.size()) + kCaption;
  return size;
}

std::string panel_svg(const Explanation& explanation, const Size& size, double x) {
  const Map& map = *shown_map(explanation);
  const size_t keys = explanation.keys.size();
  std::string out = fmt::format(
      "<g transform=\"translate({:.0f} 0)\">\n<text class=\"title\" y=\"16\">{}</text>\n", x,
      escape_html(explanation.title));
  for (size_t j = 0; j < keys; ++j)
    out += fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\">{}</text>\n",
                       size.left + kCell * (static_cast<double>(j) + 0.68), size.top - 6,
                       escape_html(explanation.keys[j].text));
  for (size_t i = 0; i < explanation.queries.size(); ++i) {
    const double y = size.top + kCell * static_cast<double>(i);
    out += fmt::format("<text class=\"query\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", size.left - 6,
                       y + 0.68 * kCell, escape_html(explanation.queries[i].text));
    for (size_t j = 0; j < keys; ++j) {
      const float weight = map.dense[i * keys + j];
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" "
          "fill=\"{}\"><title>{} → {}: {:.3f}</title></rect>\n",
          size.left + kCell * static_cast<double>(j), y, kCell - 1, kCell - 1, colour(weight),
          escape_html(explanation.queries[i].text), escape_html(explanation.keys[j].text), weight);
    }
  }
  for (const Link& link : explanation.truth->sure)
    out += fmt::format(
        "<rect class=\"truth\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n",
        size.left + kCell * link.key, size.top + kCell * link.query, kCell - 1, kCell - 1);
  const double below = size.top + kCell * static_cast<double>(explanation.queries.size());
  out += fmt::format("<text class=\"label\" y=\"{:.1f}\">{}: {}</text>\n", below + 18,
                     escape_html(explanation.system), escape_html(explanation.score));
  return out + fmt::format("<text class=\"label\" y=\"{:.1f}\">{}; outlined: {}</text>\n</g>\n",
                           below + 33, escape_html(explanation.normaliser),
                           escape_html(explanation.truth->label.substr(
                               0, explanation.truth->label.find(':'))));
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
