#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "explain/drawing/views.h"
#include "explain/markup.h"

namespace fovea::explain::drawing {
namespace {

constexpr size_t kMostLabels = 40, kMostCells = 120, kMostLetters = 24;
constexpr double kLegend = 160;

double room_for(const std::vector<Item>& items) {
  if (items.size() > kMostLabels) return 20;
  double most = 10;
  for (const Item& item : items)
    most = std::max(most, text_width(shortened(item.text, kMostLetters)));
  return most + 8;
}

// From 0 to the largest weight, both ends labelled, and where even attention lies on it.
Piece scale_of(const Explanation& e, double most, bool signs) {
  Piece out{.width = kLegend + 60, .height = 44};
  constexpr int kSteps = 32;
  const double low = signs ? -1 : 0;
  for (int i = 0; i < kSteps; ++i)
    out.svg += rectangle(kLegend * i / kSteps, 14, kLegend / kSteps + 0.5, 10,
                         colour(low + (1 - low) * (i + 0.5) / kSteps));
  out.svg += text_at(0, 38, signs ? number(-most) : "0", Anchor::kStart, "number");
  out.svg += text_at(kLegend, 38, number(most), Anchor::kEnd, "number");
  const double even = 1 / static_cast<double>(std::max<size_t>(1, e.keys.size()));
  if (!signs && e.normaliser.find("softmax") != std::string::npos && even < most) {
    const double at = kLegend * even / most;
    out.svg += rectangle(at - 0.75, 10, 1.5, 18, "#d1410c");
    out.svg += text_at(std::min(at + 4, kLegend - 10), 9,
                       fmt::format("even: 1/{} = {}", e.keys.size(), number(even)), Anchor::kStart,
                       "number");
  }
  return out;
}

}  // namespace

Piece heat_map(const Explanation& e) {
  const size_t queries = e.queries.size(), keys = e.keys.size();
  const size_t rows = std::min(queries, kMostCells), columns = std::min(keys, kMostCells);
  const double left = room_for(e.queries), top = room_for(e.keys);
  const double cell =
      std::clamp(kWidest / static_cast<double>(std::max<size_t>(1, columns)), 4.0, 22.0);
  const double inside = cell > 8 ? cell - 1 : cell;
  std::vector<double> blocks(rows * columns, 0);
  double most = 0;
  bool signs = false;
  each_weight(e, [&](size_t query, size_t key, double weight) {
    double& block = blocks[query * rows / queries * columns + key * columns / keys];
    if (std::abs(weight) > std::abs(block)) block = weight;
    most = std::max(most, std::abs(weight));
    signs = signs || weight < 0;
  });
  std::string out;
  if (keys <= kMostLabels)
    for (size_t j = 0; j < keys; ++j)
      out += upwards(left + cell * (static_cast<double>(j) + 0.68), top - 6,
                     shortened(e.keys[j].text, kMostLetters));
  else
    out +=
        text_at(left, top - 6, fmt::format("{} × {}", keys, e.key_label), Anchor::kStart, "label");
  if (queries <= kMostLabels)
    for (size_t i = 0; i < queries; ++i)
      out += text_at(left - 6, top + cell * (static_cast<double>(i) + 0.68),
                     shortened(e.queries[i].text, kMostLetters), Anchor::kEnd);
  else
    out += upwards(left - 6, top + cell * static_cast<double>(rows),
                   fmt::format("{} × {}", queries, e.query_label));
  const bool whole = rows == queries && columns == keys && queries * keys <= 2000;
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) {
      const double weight = blocks[i * columns + j], x = left + cell * static_cast<double>(j),
                   y = top + cell * static_cast<double>(i);
      if (weight == 0) continue;
      const std::string fill = colour(weight / most);
      out += whole ? fmt::format(
                         "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
                         "height=\"{:.1f}\" fill=\"{}\"><title>{} → {}: {}</title></rect>\n",
                         x, y, inside, inside, fill, escape_html(e.queries[i].text),
                         escape_html(e.keys[j].text), number(weight))
                   : rectangle(x, y, inside, inside, fill);
    }
  if (whole)
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j)
        if (wanted(e, i, j))
          out +=
              rectangle(left + cell * static_cast<double>(j), top + cell * static_cast<double>(i),
                        inside, inside, "none", "class=\"truth\"");
  const double wide = cell * static_cast<double>(columns), high = cell * static_cast<double>(rows);
  out += rectangle(left - 0.5, top - 0.5, wide + 1, high + 1, "none", "stroke=\"#d0d7de\"");
  const Piece map{.width = left + wide, .height = top + high, .svg = out};
  return stacked({map, scale_of(e, most, signs)});
}

}  // namespace fovea::explain::drawing
