#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "explain/drawing/views.h"

namespace fovea::explain::drawing {
namespace {

constexpr double kWide = 560, kHigh = 400, kEdge = 40;
constexpr size_t kMostNodes = 60, kMostEdges = 400;

struct Place {
  double x, y;
};

std::string line(Place from, Place to, double width, std::string_view stroke, double opacity) {
  return fmt::format(
      "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"{}\" stroke-width=\"{:.1f}\" "
      "stroke-opacity=\"{:.2f}\"/>\n",
      from.x, from.y, to.x, to.y, stroke, width, opacity);
}

std::vector<Place> places(const std::vector<Item>& nodes) {
  std::vector<Place> out;
  const bool placed = std::all_of(nodes.begin(), nodes.end(),
                                  [](const Item& node) { return node.position.size() >= 2; });
  double low[2] = {1e300, 1e300}, high[2] = {-1e300, -1e300};
  if (placed)
    for (const Item& node : nodes)
      for (size_t c : {size_t{0}, size_t{1}}) {
        low[c] = std::min(low[c], node.position[c]);
        high[c] = std::max(high[c], node.position[c]);
      }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const double turn =
        2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(nodes.size());
    const auto share = [&](size_t c) {
      return high[c] > low[c] ? (nodes[i].position[c] - low[c]) / (high[c] - low[c]) : 0.5;
    };
    const double x = placed ? share(0) : 0.5 + 0.5 * std::cos(turn);
    const double y = placed ? share(1) : 0.5 + 0.5 * std::sin(turn);
    out.push_back({kEdge + (kWide - 2 * kEdge) * x, kEdge + (kHigh - 2 * kEdge) * y});
  }
  return out;
}

// The heaviest first.
std::vector<Link> edges(const Explanation& e, const Weights& weights) {
  std::vector<Link> out;
  for (size_t i = 0; i < e.queries.size(); ++i)
    for (size_t j = 0; j < e.keys.size(); ++j)
      if (weights.of(i, j) != 0)
        out.push_back({static_cast<int32_t>(i), static_cast<int32_t>(j),
                       static_cast<float>(weights.of(i, j))});
  std::stable_sort(out.begin(), out.end(), [](const Link& a, const Link& b) {
    return std::abs(a.weight) > std::abs(b.weight);
  });
  if (out.size() > kMostEdges) out.resize(kMostEdges);
  return out;
}

std::string node_svg(Place at, const Item& node, bool chosen) {
  std::string out = fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" stroke=\"#fff\"/>\n", at.x, at.y,
      chosen ? 8 : 5, category(static_cast<size_t>(std::max(0, node.group))));
  return out + text_at(at.x + 8, at.y + 4, shortened(node.text, 16), Anchor::kStart,
                       chosen ? "title" : "number");
}

// One query in the middle, the keys it looks at around it.
Piece neighbourhood(const Explanation& e, const Weights& weights) {
  std::vector<Item> around;
  std::vector<double> shares;
  for (size_t key = 0; key < e.keys.size() && around.size() < kMostNodes; ++key)
    if (weights.of(0, key) != 0) {
      around.push_back(e.keys[key]);
      around.back().position.clear();
      shares.push_back(std::abs(weights.of(0, key)) / weights.most);
    }
  const Place middle{kWide / 2, kHigh / 2};
  const std::vector<Place> at = places(around);
  std::string out;
  for (size_t i = 0; i < around.size(); ++i)
    out += line(middle, at[i], 0.5 + 6 * shares[i], category(0), 0.2 + 0.7 * shares[i]);
  for (size_t i = 0; i < around.size(); ++i) out += node_svg(at[i], around[i], false);
  return {.width = kWide + 60, .height = kHigh, .svg = out + node_svg(middle, e.queries[0], true)};
}

}  // namespace

Piece graph(const Explanation& e) {
  const Weights weights = chosen_weights(e);
  const bool whole = e.queries.size() == e.keys.size() && e.queries.size() > 1 &&
                     e.queries[0].position.size() >= 2;
  if (!whole) return neighbourhood(e, weights);
  const std::vector<Place> at = places(e.queries);
  std::string out;
  for (const Link& link : edges(e, weights)) {
    const double share = std::abs(static_cast<double>(link.weight)) / weights.most;
    if (link.query != link.key)
      out += line(at[static_cast<size_t>(link.query)], at[static_cast<size_t>(link.key)],
                  0.4 + 3 * share, "#57606a", 0.1 + 0.7 * share);
  }
  const bool named = e.queries.size() <= kMostNodes;
  for (size_t i = 0; i < e.queries.size(); ++i)
    out += node_svg(at[i], named ? e.queries[i] : Item{.group = e.queries[i].group}, false);
  std::vector<Piece> keys;
  for (size_t g = 0; g < std::min<size_t>(e.groups.size(), 8); ++g)
    keys.push_back({.width = 20 + text_width(shortened(e.groups[g].name, 20)),
                    .height = kLine,
                    .svg = rectangle(0, 3, 10, 10, category(g)) +
                           text_at(15, 12, shortened(e.groups[g].name, 20))});
  return stacked({{.width = kWide + 60, .height = kHigh, .svg = out}, beside(keys, 12)});
}

Piece tree(const std::vector<TreeNode>& nodes) {
  constexpr double kColumn = 104, kRow = 24;
  std::vector<size_t> depth(nodes.size(), 0);
  std::vector<double> row(nodes.size(), -1);
  std::vector<std::vector<size_t>> children(nodes.size());
  std::vector<bool> kept(nodes.size(), false), won(nodes.size(), false);
  // A pruned hypothesis is shown only if its parent leads to an end.
  for (size_t i = nodes.size(); i-- > 0;) {
    const auto state = nodes[i].state;
    if (state == TreeNode::State::kBest || state == TreeNode::State::kFinished) kept[i] = true;
    if (state == TreeNode::State::kBest) won[i] = true;
    if (nodes[i].parent < 0) continue;
    const auto parent = static_cast<size_t>(nodes[i].parent);
    if (kept[i]) kept[parent] = true;
    if (won[i]) won[parent] = true;
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].parent < 0) continue;
    const auto parent = static_cast<size_t>(nodes[i].parent);
    depth[i] = depth[parent] + 1;
    if (kept[i] || kept[parent]) children[parent].push_back(i);
  }
  double next = 0;
  size_t deepest = 0;
  const auto place = [&](auto&& self, size_t i) -> double {
    deepest = std::max(deepest, depth[i]);
    if (children[i].empty()) return row[i] = next++;
    double sum = 0;
    for (const size_t child : children[i]) sum += self(self, child);
    return row[i] = sum / static_cast<double>(children[i].size());
  };
  for (size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].parent < 0) place(place, i);
  const auto at = [&](size_t i) {
    return Place{kColumn * static_cast<double>(depth[i]), kRow * (row[i] + 0.5)};
  };
  std::string lines, texts;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (row[i] < 0) continue;
    const bool best = won[i], pruned = nodes[i].state == TreeNode::State::kPruned;
    const Place here = at(i);
    if (nodes[i].parent >= 0) {
      const Place from = at(static_cast<size_t>(nodes[i].parent));
      lines += line({from.x + kColumn - 26, from.y}, {here.x - 4, here.y}, best ? 2.5 : 1.2,
                    pruned ? "#b6bec7" : category(best ? 1 : 0), 1);
    }
    texts += text_at(here.x, here.y + 4, shortened(nodes[i].text, 11), Anchor::kStart,
                     best     ? "title"
                     : pruned ? "number"
                              : "");
  }
  return {.width = kColumn * static_cast<double>(deepest + 1),
          .height = kRow * std::max(1.0, next),
          .svg = lines + texts};
}

}  // namespace fovea::explain::drawing
