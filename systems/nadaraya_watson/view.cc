// The picture: data and curve under a bandwidth slider, kernels before and after normalising, the
// weights as a heat map, and the leave-one-out curve.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "data/files/lines.h"
#include "systems/nadaraya_watson/consistency.h"
#include "systems/nadaraya_watson/contours.h"
#include "systems/nadaraya_watson/task.h"

namespace fovea::systems::nadaraya_watson {
namespace {

constexpr int64_t kCurvePoints = 200;  // where a curve is drawn
constexpr int64_t kShownRows = 40;     // queries of the heat map
constexpr int64_t kLayeredKeys = 500;  // up to so many observations the weights follow the sliders
constexpr int kShownBandwidths = 15;
constexpr const char* kBandwidth = "bandwidth h";  // of the slider, and of the maps it chooses
constexpr int64_t kShownKeys = 2000;  // more keys than this are shown by their largest weights only

std::vector<double> doubles(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

explain::Curve curve_of(std::string label, std::vector<double> x, std::vector<double> y,
                        explain::Curve::Kind kind = explain::Curve::Kind::kLine) {
  explain::Curve out;
  out.kind = kind;
  out.label = std::move(label);
  out.x = std::move(x);
  out.y = std::move(y);
  return out;
}

torch::Tensor rank4(const torch::Tensor& rows) { return rows.reshape({1, 1, rows.size(0), -1}); }

std::string row_name(const std::vector<std::string>& columns, const torch::Tensor& row) {
  std::string text;
  for (size_t c = 0; c < columns.size() && c < 4; ++c)
    text += fmt::format("{}{} = {:.4g}", c ? ", " : "", columns[c],
                        row[static_cast<int64_t>(c)].item<double>());
  return columns.size() > 4 ? text + ", …" : text;
}

// Some of the bandwidths that were tried, evenly in their logarithm, the chosen one among them.
std::vector<double> shown_bandwidths(const std::vector<GridPoint>& grid, double chosen) {
  std::vector<double> out;
  if (grid.empty()) return out;
  const double step = std::pow(grid.back().h / grid.front().h, 1.0 / kShownBandwidths);
  for (const GridPoint& point : grid)
    if (out.empty() || point.h >= step * out.back() || point.h == chosen) out.push_back(point.h);
  return out;
}

// Against the mean alone, which no number of observations improves.
explain::Plot error_against_rows(const Model& model, const Shape& shape) {
  explain::Plot plot;
  plot.title = "More observations, less error";
  plot.x_label = "observations n, h shrinking with them";
  plot.y_label = "leave-one-out error (RMSE)";
  plot.log_x = true;
  std::vector<double> rows, errors;
  for (const ErrorAtRows& one : errors_by_rows(model, shape)) {
    rows.push_back(static_cast<double>(one.rows));
    errors.push_back(one.error);
  }
  const double spread = model.y.to(torch::kFloat64).std(0, false).item<double>();
  plot.curves.push_back(curve_of("f(x)", rows, errors));
  plot.curves.push_back(curve_of("mean of all", {rows.front(), rows.back()}, {spread, spread}));
  return plot;
}

// The columns of the motorcycle observations in words; other columns have the names of their file.
std::string in_words(const std::string& column, const std::vector<std::string>& inputs,
                     const std::string& target) {
  if (inputs != std::vector<std::string>{"times"} || target != "accel") return column;
  return column == target ? "acceleration of the head, g" : "milliseconds after the impact";
}

// 73660 and 0.01234, not 7.366e+04.
std::string plain(double level) {
  return std::abs(level) >= 1e4 && std::abs(level) < 1e9 ? fmt::format("{:.0f}", level)
                                                         : fmt::format("{:.4g}", level);
}

}  // namespace

std::vector<explain::Explanation> Regression::explain(Input* input) {
  torch::Tensor raw;
  if (input) {
    const std::string text = data::read_stream(input->stream, input->name);
    const data::Table table = data::parse_csv(text, input->name);
    raw = torch::tensor(data::inputs(table, columns_), torch::kFloat64)
              .reshape({-1, shape_.inputs})
              .slice(0, 0, kShownRows);
  } else if (shape_.inputs == 1) {
    const torch::Tensor x = (model_->x * model_->deviation + model_->mean).to(torch::kFloat64);
    raw =
        torch::linspace(x.min().item<double>(), x.max().item<double>(), kShownRows, torch::kFloat64)
            .unsqueeze(1);
  } else {
    raw =
        (model_->x * model_->deviation + model_->mean).to(torch::kFloat64).slice(0, 0, kShownRows);
  }
  return {picture(raw)};
}

explain::Explanation Regression::picture(const torch::Tensor& raw) const {
  explain::Explanation out;
  const torch::Tensor query = model_->scaled(raw);
  const torch::Tensor h = model_->bandwidth_at(query);
  const std::string asked = in_words(target_, columns_, target_);
  out.title = asked != target_
                  ? "A motorcycle crash: " + asked
                  : fmt::format("{} from {}", target_,
                                columns_.size() == 1 ? columns_[0]
                                                     : fmt::format("{} inputs", columns_.size()));
  out.view = explain::View::kMatrix;
  out.score =
      fmt::format("log K(u), {} kernel, u = |D(x − xᵢ)|/h", run_options_.options.text("kernel"));
  out.normaliser = model_->kernel == KernelName::kSilverman
                       ? "kernel ratio (signed: weights may be negative)"
                       : "kernel ratio, in log space";
  out.structure = "all observations";
  const int64_t k = model_->neighbours.item<int64_t>();
  out.scale = k > 0 ? fmt::format("h = distance to neighbour {}", k)
                    : fmt::format("h = {:.4g}", model_->bandwidth.item<double>());
  out.query_label = "point asked about";
  out.key_label = "observation";
  if (model_->kernel == KernelName::kSilverman)
    out.notes.push_back(
        "Silverman's kernel goes below zero: these weights are no probabilities, and their sum may "
        "vanish.");

  // Keys in the order of the first input, so that the band of the heat map is a band.
  torch::Tensor order = model_->x.select(1, 0).argsort();
  const Choices choices = model_->choices(h);
  const torch::Tensor raw_keys = (model_->x * model_->deviation + model_->mean).to(torch::kFloat64);
  if (follows_sliders()) {
    add_layers(out, query, model_->x.index_select(0, order));
  } else if (model_->x.size(0) <= kShownKeys) {
    out.maps.emplace_back().dense =
        to_floats(weights(rank4(query), rank4(model_->x.index_select(0, order)), choices).weights);
  } else {
    auto& map = out.maps.emplace_back();
    const SelectedWeights top = weights(rank4(query), rank4(model_->x), choices, {.top_k = 16});
    const torch::Tensor index = top.indices.reshape({query.size(0), -1}).to(torch::kInt64).cpu();
    const torch::Tensor weight = top.weights.reshape({query.size(0), -1}).to(torch::kFloat32).cpu();
    std::set<int64_t> shown;
    for (const int64_t i :
         std::vector<int64_t>(index.data_ptr<int64_t>(), index.data_ptr<int64_t>() + index.numel()))
      if (i >= 0) shown.insert(i);
    const std::vector<int64_t> keys(shown.begin(), shown.end());
    for (int64_t q = 0; q < index.size(0); ++q)
      for (int64_t j = 0; j < index.size(1); ++j)
        if (const int64_t i = index[q][j].item<int64_t>(); i >= 0)
          map.links.push_back(
              {static_cast<int32_t>(q),
               static_cast<int32_t>(std::lower_bound(keys.begin(), keys.end(), i) - keys.begin()),
               weight[q][j].item<float>()});
    order = torch::tensor(keys, torch::kInt64);
    out.notes.push_back(fmt::format("The 16 largest weights of each point, of {} observations.",
                                    model_->x.size(0)));
  }
  const std::vector<double> predicted = doubles(model_->predict(query));
  for (int64_t q = 0; q < raw.size(0); ++q) {
    auto& item = out.queries.emplace_back();
    item.text = row_name(columns_, raw[q]);
    const double answer = predicted[static_cast<size_t>(q)];
    if (std::isfinite(answer)) item.value = answer;
    if (shape_.inputs == 1)
      item.position = {raw[q][0].item<double>(), std::isfinite(answer) ? answer : 0.0};
  }
  for (int64_t i = 0; i < order.size(0); ++i) {
    const int64_t row = order[i].item<int64_t>();
    auto& item = out.keys.emplace_back();
    item.text = row_name(columns_, raw_keys[row]);
    item.value = model_->y[row].item<double>();
  }
  add_curves(out, raw);
  return out;
}

bool Regression::follows_sliders() const {
  const auto is_chosen = [this](const GridPoint& point) {
    return point.h == model_->bandwidth.item<double>();
  };
  return shape_.inputs == 1 && model_->neighbours.item<int64_t>() == 0 &&
         model_->x.size(0) <= kLayeredKeys &&
         std::any_of(search_.grid.begin(), search_.grid.end(), is_chosen);
}

// The weights at each bandwidth of the slider.
void Regression::add_layers(explain::Explanation& out, const torch::Tensor& query,
                            const torch::Tensor& keys) const {
  const double chosen = model_->bandwidth.item<double>();
  out.scale = "h";
  out.layers = {kBandwidth, {}};
  for (const double h : shown_bandwidths(search_.grid, chosen)) {
    auto& map = out.maps.emplace_back();
    map.layer = static_cast<int>(out.layers.names.size());
    if (h == chosen) out.layers.chosen = map.layer;
    out.layers.names.push_back(fmt::format("{:.4g}", h));
    model_->bandwidth.fill_(h);
    map.dense = to_floats(
        weights(rank4(query), rank4(keys), model_->choices(model_->bandwidth_at(query))).weights);
  }
  model_->bandwidth.fill_(chosen);
}

// A few observations: the kernel at each, and the share of each, along the input.
void Regression::add_bumps(explain::Explanation& out, const torch::Tensor& at) const {
  constexpr int64_t kShownBumps = 7;
  const torch::Tensor query = model_->scaled(at.unsqueeze(1));
  const torch::Tensor order = model_->x.select(1, 0).argsort();
  Choices choices = model_->choices(model_->bandwidth_at(query));
  const torch::Tensor keys = rank4(model_->x.index_select(0, order));
  const torch::Tensor shares = weights(rank4(query), keys, choices).weights[0][0];
  choices.normaliser = Unnormalised{};
  const torch::Tensor kernels = weights(rank4(query), keys, choices).weights[0][0];
  const torch::Tensor raw = (model_->x * model_->deviation + model_->mean).to(torch::kFloat64);
  const int64_t rows = order.size(0), count = std::min(rows, kShownBumps);
  for (const auto& [title, label, of] :
       {std::tuple("Kernels of some observations", "K((x − xᵢ)/h)", &kernels),
        std::tuple("Their shares of the answer", "αᵢ(x)", &shares)}) {
    explain::Plot plot;
    plot.title = title;
    plot.x_label = in_words(columns_[0], columns_, target_);
    plot.y_label = label;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = (2 * i + 1) * rows / (2 * count);
      plot.curves.push_back(
          curve_of(fmt::format("xᵢ at {:.3g}", raw[order[place]][0].item<double>()), doubles(at),
                   doubles(of->select(1, place))));
    }
    out.plots.push_back(std::move(plot));
  }
}

// Two inputs: the observations on a map, with lines of equal prediction.
void Regression::add_map(explain::Explanation& out) const {
  constexpr int64_t kGridPoints = 40, kLevels = 7;
  const torch::Tensor raw_x = (model_->x * model_->deviation + model_->mean).to(torch::kFloat64);
  const auto side = [&](int64_t column) {
    return torch::linspace(raw_x.select(1, column).min().item<double>(),
                           raw_x.select(1, column).max().item<double>(), kGridPoints,
                           torch::kFloat64);
  };
  const torch::Tensor x = side(0), y = side(1);
  const torch::Tensor points =
      torch::stack({x.repeat({kGridPoints}), y.repeat_interleave(kGridPoints)}, 1);
  const Grid grid{doubles(x), doubles(y), doubles(model_->predict(model_->scaled(points)))};
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double height : grid.height) {
    if (!std::isfinite(height)) continue;
    low = std::min(low, height);
    high = std::max(high, height);
  }
  explain::Plot plot;
  plot.title = fmt::format("{} over {} and {}", target_, columns_[0], columns_[1]);
  plot.x_label = columns_[0];
  plot.y_label = columns_[1];
  plot.curves.push_back(curve_of("observations", doubles(raw_x.select(1, 0)),
                                 doubles(raw_x.select(1, 1)), explain::Curve::Kind::kPoints));
  for (int64_t i = 0; i < kLevels && low < high; ++i) {
    const double level = low + (static_cast<double>(i) + 0.5) / kLevels * (high - low);
    explain::Curve line = contour(grid, level, fmt::format("{} = {}", target_, plain(level)));
    if (!line.x.empty()) plot.curves.push_back(std::move(line));
  }
  out.plots.push_back(std::move(plot));
}

void Regression::add_curves(explain::Explanation& out, const torch::Tensor& raw_queries) const {
  const torch::Tensor raw_x = (model_->x * model_->deviation + model_->mean).to(torch::kFloat64);
  const bool fixed = model_->neighbours.item<int64_t>() == 0;
  if (shape_.inputs == 1) {
    // The curve, redrawn for each bandwidth of the search.
    explain::Plot fit;
    fit.title = "Data and curve";
    fit.x_label = in_words(columns_[0], columns_, target_);
    fit.y_label = in_words(target_, columns_, target_);
    const double low = raw_x.min().item<double>(), high = raw_x.max().item<double>(),
                 margin = 0.05 * (high - low);
    const torch::Tensor at =
        torch::linspace(low - margin, high + margin, kCurvePoints, torch::kFloat64);
    const torch::Tensor query = model_->scaled(at.unsqueeze(1));
    fit.curves.push_back(curve_of("observations", doubles(raw_x), doubles(model_->y),
                                  explain::Curve::Kind::kPoints));
    const double mean = model_->y.to(torch::kFloat64).mean().item<double>();
    fit.curves.push_back(curve_of("mean of all", {low - margin, high + margin}, {mean, mean}));
    const double chosen = model_->bandwidth.item<double>();
    if (fixed && !search_.grid.empty()) {
      explain::Slider slider;
      slider.label = kBandwidth;
      slider.values = shown_bandwidths(search_.grid, chosen);
      for (size_t i = 0; i < slider.values.size(); ++i) {
        if (slider.values[i] == chosen) slider.chosen = static_cast<int>(i);
        model_->bandwidth.fill_(slider.values[i]);
        fit.curves.push_back(curve_of("f(x)", doubles(at), doubles(model_->predict(query))));
        fit.curves.back().step = static_cast<int>(i);
      }
      model_->bandwidth.fill_(chosen);
      fit.slider = slider;
    } else {
      fit.curves.push_back(curve_of("f(x)", doubles(at), doubles(model_->predict(query))));
    }
    out.plots.push_back(fit);

    // One point's kernel over the observations, as it is and as a ratio.
    const torch::Tensor middle =
        model_->scaled(raw_queries.slice(0, raw_queries.size(0) / 2, raw_queries.size(0) / 2 + 1));
    const torch::Tensor order = model_->x.select(1, 0).argsort();
    const torch::Tensor keys = model_->x.index_select(0, order);
    Choices choices = model_->choices(model_->bandwidth_at(middle));
    const std::vector<double> ratio = doubles(weights(rank4(middle), rank4(keys), choices).weights);
    choices.normaliser = Unnormalised{};
    const std::vector<double> plain = doubles(weights(rank4(middle), rank4(keys), choices).weights);
    const std::vector<double> positions = doubles(raw_x.index_select(0, order));
    explain::Plot kernels;
    kernels.title = fmt::format("Weights of the observations at {}",
                                out.queries[static_cast<size_t>(raw_queries.size(0) / 2)].text);
    kernels.x_label = in_words(columns_[0], columns_, target_);
    kernels.y_label = "weight";
    kernels.curves.push_back(curve_of("K(u), not normalised", positions, plain));
    kernels.curves.push_back(curve_of("normalised", positions, ratio));
    out.plots.push_back(kernels);
    add_bumps(out, at);
  }
  if (shape_.inputs == 2) add_map(out);
  if (fixed) out.plots.push_back(error_against_rows(*model_, shape_));
  if (search_.grid.empty()) return;
  explain::Plot loo;
  loo.title =
      fixed ? "Leave-one-out error against bandwidth" : "Leave-one-out error against neighbours";
  loo.x_label = fixed ? "h" : "k";
  loo.y_label = "mean squared error";
  loo.log_x = true;
  explain::Curve curve;
  curve.label = "leave-one-out";
  for (const GridPoint& point : search_.grid) {
    curve.x.push_back(point.h);
    curve.y.push_back(point.criterion);
  }
  loo.curves.push_back(curve);
  const double chosen = fixed ? model_->bandwidth.item<double>()
                              : static_cast<double>(model_->neighbours.item<int64_t>());
  explain::Marker marker;
  marker.label = "chosen";
  marker.x = chosen;
  loo.markers.push_back(marker);
  out.plots.push_back(loo);
}

}  // namespace fovea::systems::nadaraya_watson
