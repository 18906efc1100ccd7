#include "systems/mil/windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "fovea/error.h"

namespace fovea::systems::mil {
namespace {

// Where windows begin along one side.
std::vector<int64_t> starts(int64_t length, const WindowPlan& plan) {
  std::vector<int64_t> out;
  for (int64_t at = 0; at + plan.side < length; at += plan.stride) out.push_back(at);
  out.push_back(std::max<int64_t>(0, length - plan.side));
  return out;
}

struct Grid {
  std::vector<int64_t> rows, columns;
};
Grid grid_of(const data::Image& image, const WindowPlan& plan) {
  Grid out{starts(image.height, plan), starts(image.width, plan)};
  const auto count = static_cast<int64_t>(out.rows.size() * out.columns.size());
  if (count > kMostWindows)
    throw InvalidArgument(
        fmt::format("a picture of {} x {} pixels has {} windows, expected at most {}: a larger "
                    "--set stride or --set windows has fewer",
                    image.width, image.height, count, kMostWindows));
  return out;
}

}  // namespace

std::vector<data::Box> places(const data::Image& image, const WindowPlan& plan) {
  const Grid grid = grid_of(image, plan);
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  std::vector<data::Box> out;
  for (const int64_t row : grid.rows)
    for (const int64_t column : grid.columns)
      out.push_back({static_cast<double>(column) / width, static_cast<double>(row) / height,
                     std::min(1.0, static_cast<double>(plan.side) / width),
                     std::min(1.0, static_cast<double>(plan.side) / height)});
  return out;
}

std::vector<float> windows_of(const data::Image& image, const WindowPlan& plan) {
  const Grid grid = grid_of(image, plan);
  std::vector<float> out;
  out.reserve(grid.rows.size() * grid.columns.size() * static_cast<size_t>(plan.width()));
  for (const int64_t row : grid.rows)
    for (const int64_t column : grid.columns) {
      for (int64_t colour = 0; colour < 3; ++colour)
        for (int64_t y = row; y < row + plan.side; ++y)
          for (int64_t x = column; x < column + plan.side; ++x) {
            const int64_t at =
                std::min(y, image.height - 1) * image.width + std::min(x, image.width - 1);
            out.push_back(static_cast<float>(image.pixels[static_cast<size_t>(at * 3 + colour)]) /
                              127.5f -
                          1);
          }
      if (!plan.positions) continue;
      const auto middle = [&](int64_t start, int64_t length) {
        const int64_t end = std::min(start + plan.side, length);
        return static_cast<float>(start + end) / static_cast<float>(length) - 1;
      };
      out.push_back(middle(column, image.width));
      out.push_back(middle(row, image.height));
    }
  return out;
}

std::vector<uint8_t> holds(const std::vector<data::Box>& windows,
                           const std::vector<data::Box>& boxes) {
  constexpr double kSlack = 1e-9;
  std::vector<uint8_t> out;
  for (const data::Box& window : windows)
    out.push_back(std::any_of(boxes.begin(), boxes.end(), [&](const data::Box& box) {
      return box.left >= window.left - kSlack && box.top >= window.top - kSlack &&
             box.left + box.width <= window.left + window.width + kSlack &&
             box.top + box.height <= window.top + window.height + kSlack;
    }));
  return out;
}

}  // namespace fovea::systems::mil
