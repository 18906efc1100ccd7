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
  // Above the middle, where most edges leave to the sides.
  return out +
         (chosen ? text_at(at.x, at.y - 14, shortened(node.text, 60), Anchor::kMiddle, "node")
                 : text_at(at.x + 8, at.y + 4, shortened(node.text, 24), Anchor::kStart, "number"));
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

namespace {

// A node of a tree without what was pruned.
struct Branch {
  int parent;
  std::string text;
  size_t depth = 0, pruned = 0;  // continuations that are left out
  double row = -1;
  bool best = false, greedy = false;
};

std::vector<Branch> without_pruned(const std::vector<TreeNode>& nodes) {
  std::vector<Branch> out;
  std::vector<int> place(nodes.size(), -1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int above = nodes[i].parent < 0 ? -1 : place[static_cast<size_t>(nodes[i].parent)];
    if (nodes[i].parent >= 0 && above < 0) continue;
    if (nodes[i].state == TreeNode::State::kPruned) {
      if (above >= 0) ++out[static_cast<size_t>(above)].pruned;
      continue;
    }
    place[i] = static_cast<int>(out.size());
    out.push_back({.parent = above,
                   .text = shortened(nodes[i].text, 14),
                   .depth = above < 0 ? 0 : out[static_cast<size_t>(above)].depth + 1,
                   .best = nodes[i].state == TreeNode::State::kBest,
                   .greedy = nodes[i].state == TreeNode::State::kGreedy});
  }
  for (size_t i = out.size(); i-- > 0;)  // the way to the best is drawn as best
    if (out[i].best && out[i].parent >= 0) out[static_cast<size_t>(out[i].parent)].best = true;
  return out;
}

constexpr double kRow = 32, kGap = 26;
constexpr double kMostWide = 2300;  // of a tree, whose longer ways end with three points

// Where each column begins that finds room, as wide as its words, and where the last one ends.
std::vector<double> columns_of(const std::vector<Branch>& branches) {
  std::vector<double> widths, from(1, 0);
  for (const Branch& branch : branches) {
    widths.resize(std::max(widths.size(), branch.depth + 1), 30);
    widths[branch.depth] = std::max(widths[branch.depth], text_width(branch.text));
  }
  for (const double width : widths) {
    if (from.back() + width + kGap > kMostWide) break;
    from.push_back(from.back() + width + kGap);
  }
  return from;
}

std::vector<Branch> within(const std::vector<Branch>& branches, size_t columns) {
  std::vector<Branch> out;
  std::vector<int> place(branches.size(), -1);
  for (size_t i = 0; i < branches.size(); ++i) {
    const int above = branches[i].parent < 0 ? -1 : place[static_cast<size_t>(branches[i].parent)];
    if (branches[i].depth == columns && above >= 0) {
      std::string& text = out[static_cast<size_t>(above)].text;
      if (!text.ends_with("…")) text += " …";
    }
    if (branches[i].depth >= columns) continue;
    place[i] = static_cast<int>(out.size());
    out.push_back(branches[i]);
    out.back().parent = above;
  }
  return out;
}

// Leaves take a row each, a parent stands amid its children; the number of rows.
size_t place_rows(std::vector<Branch>& branches) {
  std::vector<std::vector<size_t>> children(branches.size());
  for (size_t i = 0; i < branches.size(); ++i)
    if (branches[i].parent >= 0) children[static_cast<size_t>(branches[i].parent)].push_back(i);
  size_t rows = 0;
  const auto place = [&](auto&& self, size_t i) -> double {
    if (children[i].empty()) return branches[i].row = static_cast<double>(rows++);
    double sum = 0;
    for (const size_t child : children[i]) sum += self(self, child);
    return branches[i].row = sum / static_cast<double>(children[i].size());
  };
  for (size_t i = 0; i < branches.size(); ++i)
    if (branches[i].parent < 0) place(place, i);
  return rows;
}

}  // namespace

Piece tree(const std::vector<TreeNode>& nodes) {
  const std::vector<Branch> all = without_pruned(nodes);
  const std::vector<double> from = columns_of(all);
  std::vector<Branch> branches = within(all, from.size() - 1);
  const size_t rows = std::max<size_t>(1, place_rows(branches));
  std::string lines, texts;
  for (const Branch& branch : branches) {
    const Place here{from[branch.depth], kRow * (branch.row + 0.4)};
    if (branch.parent >= 0) {
      const Branch& above = branches[static_cast<size_t>(branch.parent)];
      const double end = from[above.depth] + text_width(above.text) + 3;
      lines += line({end, kRow * (above.row + 0.4)}, {here.x - 4, here.y},
                    branch.best || branch.greedy ? 2.5 : 1.2,
                    category(branch.best     ? 1
                             : branch.greedy ? 3
                                             : 0),
                    branch.best || branch.greedy ? 1 : 0.6);
    }
    texts += text_at(here.x, here.y + 4, branch.text, Anchor::kStart, branch.best ? "title" : "");
    if (branch.pruned > 0)
      texts +=
          text_at(here.x, here.y + 16, fmt::format("+{}", branch.pruned), Anchor::kStart, "number");
  }
  const Piece drawn{
      .width = from.back(), .height = kRow * static_cast<double>(rows), .svg = lines + texts};
  const bool greedy =
      std::any_of(branches.begin(), branches.end(), [](const Branch& b) { return b.greedy; });
  return stacked({drawn, paragraph(std::string("bold: the best") +
                                       (greedy ? "; purple: where greedy search goes" : "") +
                                       "; +n: continuations that were pruned",
                                   kWidest, "label")});
}

}  // namespace fovea::explain::drawing
