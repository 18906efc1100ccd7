#include "explain/still.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/files/file.h"
#include "explain/markup.h"
#include "fovea/error.h"

namespace fovea::explain {
namespace {

constexpr size_t kMost = 16;  // queries or keys a panel can show with words that are read
constexpr double kCell = 22, kGap = 36, kLetter = 7.2, kTitle = 26, kCaption = 40;

const Map* shown_map(const Explanation& explanation) {
  for (const Map& map : explanation.maps)
    if (map.layer == explanation.layers.chosen && map.head == explanation.heads.chosen &&
        !map.dense.empty())
      return &map;
  return nullptr;
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
  double left, top, width, height;  // left and top: the room of the words
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
         !explanation.truth->sure.empty() && shown_map(explanation);
}

std::string still_svg(const std::vector<Explanation>& panels) {
  double width = 0, height = 0;
  std::string drawn;
  for (const Explanation& panel : panels) {
    if (!is_still(panel))
      throw InvalidArgument(
          fmt::format("panels: {} cannot be a still picture, expected few words and a known truth",
                      data::shown(panel.title)));
    const Size size = size_of(panel);
    drawn += panel_svg(panel, size, width);
    width += size.width + kGap;
    height = std::max(height, size.height);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-12 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\">\n"
      "<style>text{{font:12px "
      "system-ui,sans-serif;fill:#24292f}}.title{{font-weight:600}}.query{{text-anchor:end}}.label{"
      "{fill:#57606a}}"
      ".truth{{fill:none;stroke:#d1410c;stroke-width:2}}</style>\n<rect x=\"-12\" width=\"100%\" "
      "height=\"100%\" fill=\"#fff\"/>\n{2}</svg>\n",
      width - kGap + 24, height + 6, drawn);
}

}  // namespace fovea::explain
