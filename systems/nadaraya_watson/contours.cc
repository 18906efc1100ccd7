#include "systems/nadaraya_watson/contours.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <unordered_map>
#include <utility>

namespace fovea::systems::nadaraya_watson {
namespace {

struct Corner {
  double x = 0, y = 0, height = 0;
};

// Where the edge from a to b is at the level.
std::pair<double, double> crossing(const Corner& a, const Corner& b, double level) {
  const double share = (level - a.height) / (b.height - a.height);
  return {a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)};
}

// Where the line crosses an edge of the grid, which the two cells beside it share.
struct Crossing {
  size_t edge = 0;
  double x = 0, y = 0;
};
using Segment = std::pair<Crossing, Crossing>;

// The pieces of the line within the cells.
std::vector<Segment> segments(const Grid& grid, double level) {
  const size_t columns = grid.x.size();
  const auto corner = [&](size_t row, size_t column) {
    return Corner{grid.x[column], grid.y[row], grid.height[row * columns + column]};
  };
  std::vector<Segment> out;
  for (size_t row = 0; row + 1 < grid.y.size(); ++row) {
    for (size_t column = 0; column + 1 < columns; ++column) {
      // Round the cell, so that crossings that follow each other belong together. Edges to the right
      // have even numbers, edges upwards odd ones.
      const std::array<Corner, 4> corners = {corner(row, column), corner(row, column + 1),
                                             corner(row + 1, column + 1), corner(row + 1, column)};
      const size_t here = 2 * (row * columns + column);
      const std::array<size_t, 4> edges = {here, here + 3, here + 2 * columns, here + 1};
      std::vector<Crossing> crossings;
      for (size_t i = 0; i < corners.size(); ++i) {
        const Corner &a = corners[i], &b = corners[(i + 1) % corners.size()];
        if (!std::isfinite(a.height) || !std::isfinite(b.height)) continue;
        if ((a.height < level) == (b.height < level)) continue;
        const auto [x, y] = crossing(a, b, level);
        crossings.push_back({edges[i], x, y});
      }
      for (size_t i = 0; i + 1 < crossings.size(); i += 2)
        out.emplace_back(crossings[i], crossings[i + 1]);
    }
  }
  return out;
}

// Segments that meet at an edge are one line. Each is used once.
class Chains {
 public:
  explicit Chains(const std::vector<Segment>& segments)
      : segments_(segments), used_(segments.size()) {
    for (size_t i = 0; i < segments.size(); ++i)
      for (const size_t edge : {segments[i].first.edge, segments[i].second.edge})
        at_[edge].push_back(i);
  }
  bool used(size_t segment) const { return used_[segment] != 0; }
  // The whole line that a segment is part of.
  std::deque<Crossing> line(size_t segment) {
    used_[segment] = 1;
    std::deque<Crossing> out = {segments_[segment].first, segments_[segment].second};
    while (const Crossing* next = beyond(out.back().edge)) out.push_back(*next);
    while (const Crossing* next = beyond(out.front().edge)) out.push_front(*next);
    return out;
  }

 private:
  const Crossing* beyond(size_t edge) {
    for (const size_t i : at_[edge]) {
      if (used_[i] != 0) continue;
      used_[i] = 1;
      return segments_[i].first.edge == edge ? &segments_[i].second : &segments_[i].first;
    }
    return nullptr;
  }

  const std::vector<Segment>& segments_;
  std::vector<uint8_t> used_;
  std::unordered_map<size_t, std::vector<size_t>> at_;
};

}  // namespace

explain::Curve contour(const Grid& grid, double level, std::string label) {
  explain::Curve out;
  out.label = std::move(label);
  const std::vector<Segment> all = segments(grid, level);
  Chains chains(all);
  for (size_t i = 0; i < all.size(); ++i) {
    if (chains.used(i)) continue;
    for (const Crossing& point : chains.line(i)) {
      out.x.push_back(point.x);
      out.y.push_back(point.y);
    }
    out.x.push_back(out.x.back());
    out.y.push_back(std::numeric_limits<double>::quiet_NaN());  // a gap
  }
  return out;
}

}  // namespace fovea::systems::nadaraya_watson
