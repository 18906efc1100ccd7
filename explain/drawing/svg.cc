#include "explain/drawing/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "explain/markup.h"

namespace fovea::explain::drawing {
namespace {

constexpr double kMargin = 16;

bool begins_letter(char c) { return (c & 0xc0) != 0x80; }

// Of UTF-8, the bytes of the first `letters` letters.
size_t bytes_of(std::string_view text, size_t letters) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if (begins_letter(text[at]) && letters-- == 0) break;
  return at;
}

// 2e5, 1.5e-7: not 2.0e+05.
std::string power_of_ten(double value) {
  std::string text = fmt::format("{:.1e}", value);
  const size_t e = text.find('e');
  const int power = std::atoi(text.c_str() + e + 1);
  text.resize(e);
  if (text.ends_with(".0")) text.resize(e - 2);
  return fmt::format("{}e{}", text, power);
}

}  // namespace

double text_width(std::string_view text) {
  double width = 0;
  for (const char c : text)
    if (begins_letter(c))
      width += c == 'i' || c == 'l' || c == 't' || c == 'f' || c == '.' || c == ',' || c == ' ' ? 4
               : c == 'm' || c == 'w' || c == 'W' || c == 'M' || (c & 0x80) != 0                ? 10
                                                                                 : 7.1;
  return width;
}

std::string shortened(std::string_view text, size_t letters) {
  if (bytes_of(text, letters) == text.size()) return std::string(text);
  return std::string(text.substr(0, bytes_of(text, letters - 1))) + "…";
}

std::string text_at(double x, double y, std::string_view text, Anchor anchor,
                    std::string_view kind) {
  constexpr std::array<std::string_view, 3> kAnchors = {"", " text-anchor=\"middle\"",
                                                        " text-anchor=\"end\""};
  return fmt::format("<text{}{} x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                     kind.empty() ? "" : fmt::format(" class=\"{}\"", kind),
                     kAnchors[static_cast<size_t>(anchor)], x, y,
                     escape_html(with_visible_directions(text)));
}

std::string upwards(double x, double y, std::string_view text) {
  return fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\">{}</text>\n", x, y,
                     escape_html(with_visible_directions(text)));
}

std::string rectangle(double x, double y, double width, double height, std::string_view fill,
                      std::string_view more) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" {}/>\n", x, y,
      width, height, fill, more);
}

std::string moved(double x, double y, std::string_view svg) {
  return fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n{}</g>\n", x, y, svg);
}

Piece paragraph(std::string_view text, double width, std::string_view kind) {
  constexpr double kBold = 1.13;  // of the width of letters that are not
  const auto wide = [&](std::string_view line) {
    return text_width(line) * (kind == "title" ? kBold : 1);
  };
  std::vector<std::string> lines;
  bool fresh = true;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", from), text.size());
    const std::string word(text.substr(from, end - from));
    if (!fresh && wide(lines.back() + " " + word) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
    fresh = end < text.size() && text[end] == '\n';
    from = end + 1;
  }
  Piece out;
  for (size_t i = 0; i < lines.size(); ++i) {
    out.svg += text_at(0, kLine * static_cast<double>(i) + 12, lines[i], Anchor::kStart, kind);
    out.width = std::max(out.width, wide(lines[i]));
  }
  out.height = kLine * static_cast<double>(lines.size());
  return out;
}

Piece stacked(const std::vector<Piece>& pieces, double gap) {
  Piece out;
  for (const Piece& piece : pieces) {
    if (piece.svg.empty()) continue;
    if (!out.svg.empty()) out.height += gap;
    out.svg += moved(0, out.height, piece.svg);
    out.height += piece.height;
    out.width = std::max(out.width, piece.width);
  }
  return out;
}

Piece beside(const std::vector<Piece>& pieces, double gap) {
  Piece out;
  for (const Piece& piece : pieces) {
    if (piece.svg.empty()) continue;
    if (!out.svg.empty()) out.width += gap;
    out.svg += moved(out.width, 0, piece.svg);
    out.width += piece.width;
    out.height = std::max(out.height, piece.height);
  }
  return out;
}

std::string colour(double weight) {
  const double t = std::clamp(std::abs(weight), 0.0, 1.0);
  const std::array<double, 3> far =
      weight < 0 ? std::array<double, 3>{96, 165, 233} : std::array<double, 3>{224, 180, 97};
  return fmt::format("#{:02x}{:02x}{:02x}", static_cast<int>(246 - far[0] * t),
                     static_cast<int>(249 - far[1] * t), static_cast<int>(253 - far[2] * t));
}

std::string ink(double weight) { return std::abs(weight) > 0.55 ? "#fff" : "#24292f"; }

std::string category(size_t which) {
  constexpr std::array<const char*, 8> kColours = {"#0068a5", "#c25100", "#00805c", "#a8558a",
                                                   "#8a6500", "#2f86bd", "#6a4fb3", "#6b6f76"};
  return kColours[which % kColours.size()];
}

std::string number(double value) {
  if (value == 0 || !std::isfinite(value)) return value == 0 ? "0" : "";
  const double size = std::abs(value);
  std::string text = size >= 1e5 || size < 1e-3 ? power_of_ten(value)
                     : size >= 1000             ? fmt::format("{:.0f}", value)
                                                : fmt::format("{:.3g}", value);
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

Weights chosen_weights(const Explanation& e) {
  Weights out{.at = std::vector<double>(e.queries.size() * e.keys.size(), 0),
              .keys = e.keys.size()};
  each_weight(e, [&](size_t query, size_t key, double weight) {
    out.at[query * out.keys + key] = weight;
    out.most = std::max(out.most, std::abs(weight));
  });
  return out;
}

bool can_be_held(const Explanation& e) {
  constexpr size_t kMostWeights = size_t{1} << 24;
  return e.keys.empty() || e.queries.size() <= kMostWeights / e.keys.size();
}

void each_weight(const Explanation& e,
                 const std::function<void(size_t query, size_t key, double weight)>& visit) {
  const Map* chosen = e.maps.empty() ? nullptr : &e.maps.front();
  for (const Map& map : e.maps)
    if (map.layer == e.layers.chosen && map.head == e.heads.chosen) chosen = &map;
  if (!chosen) return;
  for (size_t i = 0; i < chosen->dense.size(); ++i)
    if (chosen->dense[i] != 0)
      visit(i / e.keys.size(), i % e.keys.size(), static_cast<double>(chosen->dense[i]));
  for (const Link& link : chosen->links)
    if (link.weight != 0)
      visit(static_cast<size_t>(link.query), static_cast<size_t>(link.key),
            static_cast<double>(link.weight));
}

bool wanted(const Explanation& e, size_t query, size_t key) {
  if (!e.truth) return false;
  if (!e.truth->dense.empty()) {
    const auto row = e.truth->dense.begin() + static_cast<std::ptrdiff_t>(query * e.keys.size());
    const float most = *std::max_element(row, row + static_cast<std::ptrdiff_t>(e.keys.size()));
    return most > 0 && row[static_cast<std::ptrdiff_t>(key)] == most;
  }
  return std::any_of(e.truth->sure.begin(), e.truth->sure.end(), [&](const Link& link) {
    return static_cast<size_t>(link.query) == query && static_cast<size_t>(link.key) == key;
  });
}

std::string document(const Piece& piece) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\">\n<style>text{{font:12px system-ui,sans-serif;fill:#24292f}}"
      ".title{{font-weight:600}}.label,.number{{fill:#57606a}}.number{{font-size:11px}}"
      ".node{{font-weight:600;paint-order:stroke;stroke:#fff;stroke-width:4px}}"
      ".truth{{fill:none;stroke:#d1410c;stroke-width:2}}.on{{fill:inherit}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{2}</svg>\n",
      piece.width + 2 * kMargin, piece.height + 2 * kMargin, moved(kMargin, kMargin, piece.svg));
}

}  // namespace fovea::explain::drawing
