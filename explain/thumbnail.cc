#include "explain/thumbnail.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace fovea::explain {
namespace {

constexpr double kWide = 168, kHigh = 96, kMargin = 6;
constexpr size_t kRows = 20, kColumns = 36;  // cells that can still be told apart at this size

// Weights of one layer and head, none larger than 1.
struct Weights {
  size_t rows = 0, columns = 0;
  std::vector<double> at;
  double of(size_t row, size_t column) const { return at[row * columns + column]; }
};

const Map* chosen_map(const Explanation& e) {
  for (const Map& map : e.maps)
    if (map.layer == e.layers.chosen && map.head == e.heads.chosen) return &map;
  return e.maps.empty() ? nullptr : &e.maps.front();
}

// At most kRows x kColumns blocks, each by its largest weight.
Weights pooled(const Explanation& e, const Map& map) {
  const size_t queries = e.queries.size(), keys = e.keys.size();
  Weights out{.rows = std::min(queries, kRows), .columns = std::min(keys, kColumns), .at = {}};
  out.at.assign(out.rows * out.columns, 0);
  double most = 0;
  const auto put = [&](size_t query, size_t key, double weight) {
    double& cell = out.at[query * out.rows / queries * out.columns + key * out.columns / keys];
    cell = std::max(cell, std::abs(weight));
    most = std::max(most, cell);
  };
  for (size_t i = 0; i < map.dense.size(); ++i)
    put(i / keys, i % keys, static_cast<double>(map.dense[i]));
  for (const Link& link : map.links)
    put(static_cast<size_t>(link.query), static_cast<size_t>(link.key),
        static_cast<double>(link.weight));
  if (most > 0)
    for (double& cell : out.at) cell /= most;
  return out;
}

// Boxes, as dark as their weights. Those of about the same weight are one path: forty pictures of
// single boxes would weigh as much as the page that has them.
class Marks {
 public:
  void add(double x, double y, double wide, double high, double weight) {
    if (weight <= 0.004) return;
    const int level = std::max(1, static_cast<int>(std::lround(kLevels * std::min(1.0, weight))));
    paths_[level] += fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h{:.1f}z", x, y, wide, high, -wide);
  }
  std::string svg() const {
    std::string out;
    for (const auto& [level, path] : paths_)
      out += fmt::format("<path class=\"mark\" fill-opacity=\"{:.2f}\" d=\"{}\"/>",
                         static_cast<double>(level) / kLevels, path);
    return out;
  }

 private:
  static constexpr int kLevels = 25;
  std::map<int, std::string> paths_;
};

std::string heat_map(const Weights& weights) {
  const double wide = (kWide - 2 * kMargin) / static_cast<double>(weights.columns);
  const double high = (kHigh - 2 * kMargin) / static_cast<double>(weights.rows);
  Marks out;
  for (size_t i = 0; i < weights.rows; ++i)
    for (size_t j = 0; j < weights.columns; ++j)
      out.add(kMargin + wide * static_cast<double>(j), kMargin + high * static_cast<double>(i),
              wide, high, weights.of(i, j));
  return out.svg();
}

std::string lines(const Weights& weights) {
  const auto place = [](size_t i, size_t n) {
    return kMargin +
           (kHigh - 2 * kMargin) * (static_cast<double>(i) + 0.5) / static_cast<double>(n);
  };
  std::string out;
  for (size_t i = 0; i < weights.rows; ++i)
    for (size_t j = 0; j < weights.columns; ++j)
      if (weights.of(i, j) > 0.05)
        out += fmt::format(
            "<path class=\"trace\" d=\"M30 {:.1f}L{:.0f} {:.1f}\" stroke-width=\"{:.1f}\" "
            "stroke-opacity=\"{:.2f}\"/>",
            place(i, weights.rows), kWide - 30, place(j, weights.columns), 3 * weights.of(i, j),
            weights.of(i, j));
  return out;
}

// Words as boxes in lines, as long as the words and as dark as their weights.
std::string words(const Explanation& e, const Map& map) {
  double x = kMargin, y = kMargin + 2, most = 0;
  const size_t shown = std::min<size_t>(e.keys.size(), 60);
  std::vector<double> weights(e.keys.size(), 0);
  for (size_t j = 0; j < map.dense.size() && j < weights.size(); ++j)
    weights[j] = std::abs(static_cast<double>(map.dense[j]));
  for (const Link& link : map.links)
    if (link.query == 0)
      weights[static_cast<size_t>(link.key)] = std::abs(static_cast<double>(link.weight));
  for (const double weight : weights) most = std::max(most, weight);
  Marks out;
  for (size_t j = 0; j < shown; ++j) {
    const double wide =
        4.0 + 3.4 * static_cast<double>(std::min<size_t>(e.keys[j].text.size(), 14));
    if (x + wide > kWide - kMargin) x = kMargin, y += 16;
    if (y > kHigh - 16) break;
    out.add(x, y, wide, 11, 0.07 + (most > 0 ? 0.9 * weights[j] / most : 0));
    x += wide + 4;
  }
  return out.svg();
}

// Regions of a picture, each as dark as its weight for the first query.
std::string regions(const Explanation& e, const Map& map) {
  Marks out;
  float most = 0;
  for (size_t j = 0; j < e.keys.size() && j < map.dense.size(); ++j)
    most = std::max(most, map.dense[j]);
  for (size_t j = 0; j < e.keys.size() && j < map.dense.size(); ++j) {
    const std::vector<double>& at = e.keys[j].position;
    if (at.size() != 4) return {};
    const double high = kHigh - 2 * kMargin;
    out.add((kWide - high) / 2 + high * at[0], kMargin + high * at[1], high * at[2], high * at[3],
            0.05 + 0.9 * static_cast<double>(map.dense[j]) / std::max(1e-9, double(most)));
  }
  return out.svg();
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double part(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

std::string plot(const Plot& given) {
  const int step = given.slider ? given.slider->chosen : -1;
  const auto across = [&](double x) { return given.log_x ? std::log(x) : x; };
  const auto up = [&](double y) { return given.log_y ? std::log(y) : y; };
  Range x, y;
  for (const Curve& curve : given.curves) {
    for (const double value : curve.x) x.take(across(value));
    for (const double value : curve.y) y.take(up(value));
    if (curve.kind == Curve::Kind::kBars) y.take(0);
  }
  std::string out;
  for (const Curve& curve : given.curves) {
    if (curve.step != -1 && curve.step != step) continue;
    std::string path;
    Marks marks;
    for (size_t i = 0; i < curve.y.size(); ++i) {
      const double px = kMargin + (kWide - 2 * kMargin) * x.part(across(curve.x[i]));
      const double py = kHigh - kMargin - (kHigh - 2 * kMargin) * y.part(up(curve.y[i]));
      if (!std::isfinite(px) || !std::isfinite(py)) continue;
      const double floor = kHigh - kMargin - (kHigh - 2 * kMargin) * y.part(0);
      if (curve.kind == Curve::Kind::kPoints)
        marks.add(px - 1.5, py - 1.5, 3, 3, 0.5);
      else if (curve.kind == Curve::Kind::kBars)
        marks.add(px - 3, std::min(py, floor), 6, std::abs(floor - py), 0.8);
      else
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", px, py);
    }
    out += marks.svg();
    if (!path.empty()) out += "<path class=\"trace\" stroke-width=\"2\" d=\"" + path + "\"/>";
  }
  return out;
}

// The column of a node is the number of its ancestors; within a column, nodes keep their order.
std::string tree(const std::vector<TreeNode>& nodes) {
  constexpr size_t kMost = 7;
  std::vector<size_t> depth(nodes.size(), 0), turn(nodes.size(), 0), count;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].parent >= 0) depth[i] = depth[static_cast<size_t>(nodes[i].parent)] + 1;
    if (count.size() <= depth[i]) count.resize(depth[i] + 1, 0);
    turn[i] = count[depth[i]]++;
  }
  const size_t columns = std::min(count.size(), kMost);
  const auto place = [&](size_t i) {
    return std::pair{
        kMargin + 4 +
            (kWide - 2 * kMargin - 8) * static_cast<double>(depth[i]) /
                static_cast<double>(std::max<size_t>(1, columns - 1)),
        kHigh * (static_cast<double>(turn[i]) + 0.5) / static_cast<double>(count[depth[i]])};
  };
  std::string out;
  Marks boxes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (depth[i] >= columns) continue;
    const auto [x, y] = place(i);
    const bool pruned = nodes[i].state == TreeNode::State::kPruned;
    if (nodes[i].parent >= 0) {
      const auto [x0, y0] = place(static_cast<size_t>(nodes[i].parent));
      out += fmt::format(
          "<path class=\"trace\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke-width=\"1.2\" "
          "stroke-opacity=\"{}\"/>",
          x0, y0, x, y, pruned ? 0.25 : 0.9);
    }
    boxes.add(x - 3, y - 2.5, 6, 5, pruned ? 0.25 : 0.95);
  }
  return out + boxes.svg();
}

std::string drawn(const Explanation& e) {
  if (!e.tree.empty()) return tree(e.tree);
  const bool live = std::any_of(e.plots.begin(), e.plots.end(),
                                [](const Plot& plot) { return plot.slider.has_value(); });
  const Map* map = e.queries.empty() || e.keys.empty() ? nullptr : chosen_map(e);
  if (!e.plots.empty() && (live || e.view == View::kCurve || !map)) return plot(e.plots.front());
  if (!map) return {};
  if (e.view == View::kText) return words(e, *map);
  if (e.view == View::kImage)
    if (std::string out = regions(e, *map); !out.empty()) return out;
  const Weights weights = pooled(e, *map);
  return e.view == View::kBipartite ? lines(weights) : heat_map(weights);
}

}  // namespace

std::string thumbnail_svg(const Explanation& explanation) {
  const std::string inside = drawn(explanation);
  if (inside.empty()) return {};
  return fmt::format("<svg viewBox=\"0 0 {0} {1}\" aria-hidden=\"true\">{2}</svg>", kWide, kHigh,
                     inside);
}

}  // namespace fovea::explain
