#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "explain/drawing/views.h"

namespace fovea::explain::drawing {
namespace {

constexpr size_t kMostRows = 6, kMostWords = 400;
constexpr double kHigh = 20, kBar = 90;

struct Word {
  std::string text;
  double share;  // of the largest weight
  bool wanted;
};

// Words in lines, each on the colour of its weight.
Piece running(const std::vector<Word>& words, double width) {
  Piece out{.width = width, .height = kHigh + 4};
  double x = 0, y = 0;
  for (const Word& word : words) {
    const std::string text = word.text.empty() ? "∅" : shortened(word.text, 40);
    const double wide = text_width(text) + 8;
    if (x > 0 && x + wide > width) x = 0, y += kHigh + 4;
    if (word.share != 0) out.svg += rectangle(x, y, wide, kHigh, colour(word.share), "rx=\"3\"");
    if (word.wanted)
      out.svg += rectangle(x + 1, y + 1, wide - 2, kHigh - 2, "none", "class=\"truth\"");
    out.svg += "<g fill=\"" + ink(word.share) + "\">" +
               text_at(x + 4, y + 14, text, Anchor::kStart, "on") + "</g>\n";
    x += wide + 3;
  }
  out.height = y + kHigh + 4;
  return out;
}

// Sentence bars on the left; words shaded by √(sentence weight) × word weight.
Piece sentences(const Explanation& e, const Weights& weights) {
  std::vector<double> shade(e.keys.size(), 0);
  double most = 0, heaviest = 0;
  for (size_t key = 0; key < e.keys.size(); ++key) {
    if (e.keys[key].group < 0) continue;
    const Group& group = e.groups[static_cast<size_t>(e.keys[key].group)];
    shade[key] = std::sqrt(std::max(0.0, group.weight.value_or(0))) * weights.of(0, key);
    most = std::max(most, std::abs(shade[key]));
  }
  for (const Group& group : e.groups) heaviest = std::max(heaviest, group.weight.value_or(0));
  std::vector<Piece> rows;
  for (size_t g = 0; g < e.groups.size() && rows.size() < 40; ++g) {
    std::vector<Word> words;
    for (size_t key = 0; key < e.keys.size(); ++key)
      if (e.keys[key].group == static_cast<int>(g))
        words.push_back({e.keys[key].text, most > 0 ? shade[key] / most : 0, wanted(e, 0, key)});
    const double weight = e.groups[g].weight.value_or(0);
    Piece bar{.width = kBar + 44, .height = kHigh};
    bar.svg =
        rectangle(0, 4, kBar, 12, "#eef1f4") +
        rectangle(0, 4, heaviest > 0 ? kBar * std::max(0.0, weight) / heaviest : 0, 12,
                  category(0)) +
        (e.groups[g].truth.value_or(false) ? rectangle(0, 4, kBar, 12, "none", "class=\"truth\"")
                                           : std::string()) +
        text_at(kBar + 6, 14, number(weight), Anchor::kStart, "number");
    rows.push_back(beside({bar, running(words, kWidest - kBar - 50)}, 6));
  }
  return stacked(rows, 4);
}

}  // namespace

Piece words(const Explanation& e) {
  const Weights weights = chosen_weights(e);
  const bool bars = std::any_of(e.groups.begin(), e.groups.end(),
                                [](const Group& group) { return group.weight.has_value(); });
  if (bars) return sentences(e, weights);
  const size_t rows = std::min(e.queries.size(), kMostRows);
  std::vector<Piece> out;
  for (size_t query = 0; query < rows; ++query) {
    std::vector<Word> line;
    for (size_t key = 0; key < std::min(e.keys.size(), kMostWords); ++key)
      line.push_back({e.keys[key].text,
                      weights.most > 0 ? weights.of(query, key) / weights.most : 0,
                      wanted(e, query, key)});
    if (rows > 1) out.push_back(paragraph(e.queries[query].text, kWidest, "label"));
    out.push_back(running(line, kWidest));
  }
  return stacked(out, 4);
}

Piece memory(const Explanation& e) {
  constexpr size_t kMostItems = 60;
  constexpr double kColumn = 60, kRow = 24;
  const Weights weights = chosen_weights(e);
  const size_t items = std::min(e.keys.size(), kMostItems);
  double left = 0;
  for (size_t key = 0; key < items; ++key)
    left = std::max(left, text_width(shortened(e.keys[key].text, 60)) + 14);
  Piece out{.width = left + kColumn * static_cast<double>(e.queries.size()),
            .height = kLine + 6 + kRow * static_cast<double>(items)};
  for (size_t query = 0; query < e.queries.size(); ++query)
    out.svg += text_at(left + kColumn * (static_cast<double>(query) + 0.5), 12,
                       shortened(e.queries[query].text, 9), Anchor::kMiddle, "label");
  for (size_t key = 0; key < items; ++key) {
    const double y = kLine + 6 + kRow * static_cast<double>(key);
    out.svg += text_at(0, y + 16, shortened(e.keys[key].text, 60));
    for (size_t query = 0; query < e.queries.size(); ++query) {
      const double weight = weights.of(query, key), x = left + kColumn * static_cast<double>(query);
      const double share = weights.most > 0 ? weight / weights.most : 0;
      out.svg += rectangle(x, y, kColumn - 2, kRow - 2, colour(share), "rx=\"3\"");
      if (weight != 0)
        out.svg += "<g fill=\"" + ink(share) + "\">" +
                   text_at(x + kColumn / 2 - 1, y + 15, fmt::format("{:.2f}", weight),
                           Anchor::kMiddle, "on") +
                   "</g>\n";
      if (wanted(e, query, key))
        out.svg += rectangle(x + 1, y + 1, kColumn - 4, kRow - 4, "none", "class=\"truth\"");
    }
  }
  return out;
}

Piece table(const Table& given) {
  constexpr size_t kMostRows = 16, kMostLetters = 44;
  std::vector<std::vector<std::string>> rows = {given.columns};
  rows.insert(
      rows.end(), given.rows.begin(),
      given.rows.begin() + static_cast<std::ptrdiff_t>(std::min(kMostRows, given.rows.size())));
  std::vector<double> wide(given.columns.size(), 0);
  for (auto& row : rows)
    for (size_t c = 0; c < row.size() && c < wide.size(); ++c) {
      row[c] = shortened(row[c], kMostLetters);
      wide[c] = std::max(wide[c], text_width(row[c]) + 18);
    }
  Piece out{.width = 0, .height = kLine * static_cast<double>(rows.size()) + 4};
  for (const double column : wide) out.width += column;
  for (size_t r = 0; r < rows.size(); ++r) {
    double x = 0;
    for (size_t c = 0; c < rows[r].size() && c < wide.size(); ++c) {
      out.svg += text_at(x, kLine * static_cast<double>(r) + (r ? 16 : 12), rows[r][c],
                         Anchor::kStart, r ? "" : "label");
      x += wide[c];
    }
  }
  out.svg += rectangle(0, kLine, out.width, 1, "#d0d7de");
  if (given.rows.size() > kMostRows)
    return stacked({paragraph(given.title, kWidest, "title"), out,
                    paragraph("the first " + std::to_string(kMostRows) + " of " +
                                  std::to_string(given.rows.size()) + " rows",
                              kWidest, "number")},
                   6);
  return stacked({paragraph(given.title, kWidest, "title"), out}, 6);
}

}  // namespace fovea::explain::drawing
