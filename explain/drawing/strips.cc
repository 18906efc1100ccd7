#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/pictures/image.h"
#include "explain/base64.h"
#include "explain/drawing/views.h"

namespace fovea::explain::drawing {
namespace {

constexpr size_t kMostStrips = 5, kMostCards = 24;
constexpr double kCard = 84, kPixels = 56, kBar = 8;

std::string image_at(const Picture& picture, double x, double y, double width, double height) {
  const std::string png =
      data::png_bytes({picture.width, picture.height, picture.channels, picture.pixels});
  return fmt::format(
      "<image x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" "
      "href=\"data:image/png;base64,{}\"/>\n",
      x, y, width, height, to_base64(png.data(), png.size()));
}

// The keys of a bag: of its group, or all. Of many, the heaviest, in their order.
std::vector<size_t> keys_of(const Explanation& e, const Weights& weights, size_t query) {
  std::vector<size_t> out;
  for (size_t key = 0; key < e.keys.size(); ++key)
    if (e.queries[query].group < 0 || e.keys[key].group == e.queries[query].group)
      out.push_back(key);
  if (out.size() <= kMostCards) return out;
  std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) {
    return std::abs(weights.of(query, a)) > std::abs(weights.of(query, b));
  });
  out.resize(kMostCards);
  std::sort(out.begin(), out.end());
  return out;
}

Piece strip(const Explanation& e, const Weights& weights, size_t query) {
  const std::vector<size_t> keys = keys_of(e, weights, query);
  double most = 0;
  bool pictures = false;
  for (const size_t key : keys) {
    most = std::max(most, std::abs(weights.of(query, key)));
    pictures = pictures || e.keys[key].picture;
  }
  const double high = (pictures ? kPixels + 4 : 0) + 3 * kLine + 4;
  const auto across = static_cast<size_t>(kWidest / kCard);
  Piece out{
      .width = kCard * static_cast<double>(std::min(across, keys.size())),
      .height = high * std::ceil(static_cast<double>(keys.size()) / static_cast<double>(across))};
  for (size_t i = 0; i < keys.size(); ++i) {
    const double x = kCard * static_cast<double>(i % across),
                 top = high * static_cast<double>(i / across);
    const Item& item = e.keys[keys[i]];
    const double weight = weights.of(query, keys[i]);
    double y = top;
    if (item.picture)
      out.svg += image_at(*item.picture, x + (kCard - 8 - kPixels) / 2, y, kPixels, kPixels);
    if (pictures) y += kPixels + 4;
    out.svg += text_at(x + (kCard - 8) / 2, y + 12, shortened(item.text, 11), Anchor::kMiddle);
    out.svg +=
        rectangle(x, y + kLine, kCard - 8, kBar, "#eef1f4") +
        rectangle(x, y + kLine, most > 0 ? (kCard - 8) * std::abs(weight) / most : 0, kBar,
                  category(weight < 0 ? 1 : 0)) +
        text_at(x + (kCard - 8) / 2, y + 2 * kLine + 4, number(weight), Anchor::kMiddle, "number");
    if (wanted(e, query, keys[i]))
      out.svg += rectangle(x - 3, top - 2, kCard - 2, high - 8, "none", "class=\"truth\" rx=\"3\"");
  }
  return out;
}

}  // namespace

Piece strips(const Explanation& e) {
  const Weights weights = chosen_weights(e);
  std::vector<Piece> out;
  for (size_t query = 0; query < std::min(e.queries.size(), kMostStrips); ++query)
    out.push_back(
        stacked({paragraph(e.queries[query].text, kWidest, "label"), strip(e, weights, query)}, 6));
  return stacked(out);
}

Piece members(const Explanation& e) {
  constexpr double kStep = kPixels + 10;
  Piece out{.width = 0, .height = kPixels + kLine};
  for (size_t i = 0; i < std::min(e.keys.size(), kMostCards); ++i) {
    const double x = kStep * static_cast<double>(i % 10),
                 y = (kPixels + kLine + 6) * static_cast<double>(i / 10);
    if (e.keys[i].picture) out.svg += image_at(*e.keys[i].picture, x, y, kPixels, kPixels);
    out.svg +=
        text_at(x + kPixels / 2, y + kPixels + 13, shortened(e.keys[i].text, 9), Anchor::kMiddle);
    out.width = std::max(out.width, x + kStep);
    out.height = y + kPixels + kLine;
  }
  return out;
}

Piece regions(const Explanation& e) {
  constexpr size_t kMost = 6;
  const Weights weights = chosen_weights(e);
  const size_t shown = std::min(e.queries.size(), kMost);
  const double wide = shown > 2 ? 200 : 320,
               high = wide * e.picture->height / std::max(1, e.picture->width);
  std::vector<Piece> rows(1), line;
  for (size_t query = 0; query < shown; ++query) {
    std::string out = image_at(*e.picture, 0, 0, wide, high);
    for (size_t key = 0; key < e.keys.size(); ++key) {
      const std::vector<double>& at = e.keys[key].position;
      const double share = weights.most > 0 ? std::abs(weights.of(query, key)) / weights.most : 0;
      if (at.size() != 4) continue;
      const double x = wide * at[0], y = high * at[1], w = wide * at[2], h = high * at[3];
      // Pictures are mostly dark: more weight is brighter over them.
      if (share > 0)
        out +=
            rectangle(x, y, w, h, "#7fe7f5", fmt::format("fill-opacity=\"{:.2f}\"", 0.75 * share));
      if (wanted(e, query, key))
        out += rectangle(x + 1, y + 1, w - 2, h - 2, "none", "class=\"truth\"");
    }
    line.push_back(stacked(
        {{.width = wide, .height = high, .svg = out}, paragraph(e.queries[query].text, wide)}, 4));
    if (line.size() == 3 || query + 1 == shown) {
      rows.push_back(beside(line, 20));
      line.clear();
    }
  }
  return stacked(rows);
}

}  // namespace fovea::explain::drawing
