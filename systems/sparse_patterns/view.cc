#include "systems/sparse_patterns/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "train/task.h"

namespace fovea::systems::sparse_patterns {
namespace {

constexpr int64_t kPositions = 64;  // of the matrices
constexpr int64_t kShownPixels = 12;
constexpr int kScale = 8;  // pixels of a pixel

explain::Explanation described(const Config& c, std::string title) {
  explain::Explanation out;
  out.system = "sparse-patterns";
  out.title = std::move(title);
  out.score = "scaled dot";
  out.normaliser = "softmax";
  out.structure = fmt::format("{}, stride {}", kKinds.name_of(c.pattern.kind), c.pattern.stride);
  out.scale = fmt::format("1/√{}", c.width / c.heads);
  return out;
}

void name_layers_and_heads(explain::Explanation& out, const Config& c) {
  out.layers = {"layer", {}};
  out.heads = {"head", {}};
  for (int64_t l = 0; l < c.layers; ++l) out.layers.names.push_back(std::to_string(l + 1));
  for (int64_t h = 0; h < c.heads; ++h) out.heads.names.push_back(std::to_string(h + 1));
}

// Given pixels black on white, drawn ones blue.
explain::Picture drawn(const torch::Tensor& whole, int64_t side, int64_t given) {
  explain::Picture out{static_cast<int>(side) * kScale, static_cast<int>(side) * kScale, 3, {}};
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x) {
      const int64_t p = y / kScale * side + x / kScale;
      const bool on = whole[0][p].item<int64_t>() != 0;
      if (!on)
        out.pixels.insert(out.pixels.end(), {250, 250, 250});
      else if (p < given)
        out.pixels.insert(out.pixels.end(), {30, 30, 30});
      else
        out.pixels.insert(out.pixels.end(), {52, 101, 164});
    }
  return out;
}

// The small version of a pattern that a matrix can show.
Pattern small(Pattern pattern) {
  pattern.stride = std::min<int64_t>(pattern.stride, 8);
  pattern.summary = std::min(pattern.summary, pattern.stride);
  return pattern;
}

void add_positions(explain::Explanation& out) {
  for (int64_t i = 0; i < kPositions; ++i) out.keys.push_back({.text = std::to_string(i)});
  out.queries = out.keys;
  out.query_label = "position";
  out.key_label = "sees";
}

explain::Explanation connectivity(const Config& c) {
  explain::Explanation out = described(c, fmt::format("Who sees whom: {} positions, stride {}",
                                                      kPositions, small(c.pattern).stride));
  add_positions(out);
  out.layers = {"pattern", {"both parts", "first part", "second part"}};
  for (const Part part : {Part::kWhole, Part::kFirst, Part::kSecond})
    out.maps.push_back({static_cast<int>(part),
                        0,
                        to_floats(mask_of(small(c.pattern), part, kPositions).to(torch::kFloat)),
                        {}});
  out.notes.push_back(
      "A pair that may be seen has the weight 1 here; these are no learned weights.");
  return out;
}

// All heads of a layer together.
torch::Tensor layer_mask(const Config& c, int64_t layer) {
  torch::Tensor out = torch::zeros({kPositions, kPositions}, torch::kBool);
  for (int64_t h = 0; h < c.heads; ++h)
    out = out.logical_or(
        mask_of(small(c.pattern), part_of(c.combination, layer, h, c.heads), kPositions));
  return out.to(torch::kFloat);
}

explain::Explanation reach(const Config& c) {
  explain::Explanation out = described(c, "Whom layers reach");
  add_positions(out);
  out.key_label = "reaches";
  out.layers = {"after layers", {}};
  torch::Tensor reached = torch::eye(kPositions);
  for (int64_t l = 0; l < std::max<int64_t>(c.layers, 2); ++l) {
    reached = layer_mask(c, l).matmul(reached).clamp_max(1);
    out.layers.names.push_back(std::to_string(l + 1));
    out.maps.push_back({static_cast<int>(l), 0, to_floats(reached), {}});
    const double all = kPositions * (kPositions + 1) / 2.0;
    out.notes.push_back(fmt::format("After {} layer{}: {:.0f} % of the earlier positions.", l + 1,
                                    l == 0 ? "" : "s", 100 * reached.sum().item<double>() / all));
  }
  return out;
}

double seconds(const Config& c, Kind kind, int64_t n) {
  Pattern pattern = c.pattern;
  pattern.kind = kind;
  pattern.stride = static_cast<int64_t>(std::lround(std::sqrt(n)));
  pattern.summary = std::min(pattern.summary, pattern.stride);
  const torch::Tensor x = torch::randn({1, 1, n, 16});
  double best = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    attend_pattern(x, x, x, pattern, Part::kWhole);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

explain::Explanation cost(const Config& c) {
  explain::Explanation out = described(c, "Time against the number of positions");
  out.view = explain::View::kCurve;
  explain::Plot plot{
      .title = "One head of width 16, forward, stride √n: milliseconds, fastest of 3",
      .x_label = "positions n",
      .y_label = "milliseconds",
      .log_x = true,
      .log_y = true};
  std::vector<Kind> kinds = {Kind::kDense};
  if (c.pattern.kind != Kind::kDense) kinds.push_back(c.pattern.kind);
  const torch::NoGradGuard no_grad;
  for (const Kind kind : kinds) {
    explain::Curve& curve = plot.curves.emplace_back();
    curve.label = fmt::format("{}, measured", kKinds.name_of(kind));
    for (const int64_t n : {256, 1024, 4096, 16384}) {
      curve.x.push_back(static_cast<double>(n));
      curve.y.push_back(1e3 * seconds(c, kind, n));
    }
    explain::Curve& line = plot.curves.emplace_back();
    const double power = kind == Kind::kDense ? 2 : 1.5;
    line.label = fmt::format("{}, predicted: n^{:g} from the last", kKinds.name_of(kind), power);
    const explain::Curve& measured = plot.curves[plot.curves.size() - 2];
    line.x = measured.x;
    for (const double n : line.x)
      line.y.push_back(measured.y.back() * std::pow(n / measured.x.back(), power));
  }
  out.plots.push_back(std::move(plot));
  out.notes.push_back("Measured while this page was made, on this machine.");
  return out;
}

}  // namespace

explain::Explanation completion(Model& model, const torch::Tensor& whole, int64_t given) {
  const Config& c = model.config();
  explain::Explanation out = described(c, "A picture completed pixel by pixel");
  out.view = explain::View::kImage;
  name_layers_and_heads(out, c);
  out.query_label = "pixel drawn";
  out.key_label = "pixel before it";
  out.picture = drawn(whole.cpu(), c.side, given);
  const double cell = 1.0 / static_cast<double>(c.side);
  const auto place = [&](int64_t p) -> std::vector<double> {
    return {static_cast<double>(p % c.side) * cell, static_cast<double>(p / c.side) * cell, cell,
            cell};
  };
  // Position i has read the pixel i - 1; the first has read none.
  out.keys.push_back({.text = "start", .position = place(0)});
  for (int64_t p = 0; p + 1 < c.pixels(); ++p)
    out.keys.push_back({.text = fmt::format("row {}, column {}", p / c.side + 1, p % c.side + 1),
                        .position = place(p)});
  std::vector<int64_t> rows;
  const int64_t drawn_pixels = c.pixels() - given;
  for (int64_t k = 0; k < std::min(kShownPixels, drawn_pixels); ++k)
    rows.push_back(given + (2 * k + 1) * drawn_pixels / (2 * std::min(kShownPixels, drawn_pixels)));
  if (rows.empty()) rows.push_back(c.pixels() - 1);
  for (const int64_t p : rows)
    out.queries.push_back(
        {.text = fmt::format("row {}, column {}", p / c.side + 1, p % c.side + 1)});
  const std::vector<torch::Tensor> states = model.states(whole);
  for (int64_t l = 0; l < c.layers; ++l) {
    std::vector<explain::Map> maps(static_cast<size_t>(c.heads));
    for (size_t q = 0; q < rows.size(); ++q) {
      const auto weights = model.layer(l).weights(states[static_cast<size_t>(l)], rows[q]);
      for (int64_t h = 0; h < c.heads; ++h) {
        const std::vector<int64_t> keys = keys_of(c.pattern, model.layer(l).part(h), rows[q]);
        const std::vector<float> row = to_floats(weights[static_cast<size_t>(h)]);
        for (size_t k = 0; k < keys.size(); ++k)
          maps[static_cast<size_t>(h)].links.push_back(
              {static_cast<int32_t>(q), static_cast<int32_t>(keys[k]), row[k]});
      }
    }
    for (int64_t h = 0; h < c.heads; ++h) {
      maps[static_cast<size_t>(h)].layer = static_cast<int>(l);
      maps[static_cast<size_t>(h)].head = static_cast<int>(h);
      out.maps.push_back(std::move(maps[static_cast<size_t>(h)]));
    }
  }
  out.notes.push_back(fmt::format(
      "The first {} rows, in black, were given; blue pixels were drawn. A position has read the "
      "pixel before its own, so that what stands straight above appears one column to the left.",
      given / c.side));
  return out;
}

std::vector<explain::Explanation> pattern_pictures(const Config& config) {
  return {connectivity(config), reach(config), cost(config)};
}

}  // namespace fovea::systems::sparse_patterns
