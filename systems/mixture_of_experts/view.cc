#include "systems/mixture_of_experts/view.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "explain/bars.h"

namespace fovea::systems::mixture_of_experts {
namespace {

std::string expert_name(int64_t expert) { return fmt::format("expert {}", expert + 1); }

// Each item at the mean of its experts' corners.
explain::Plot simplex(const Routing& routing) {
  constexpr int64_t kMostItems = 400;
  explain::Plot plot{.title = "Items between their experts"};
  const int64_t experts = routing.gates.size(1),
                items = std::min(routing.gates.size(0), kMostItems);
  explain::Curve corners{.kind = explain::Curve::Kind::kPoints, .label = "experts"};
  for (int64_t i = 0; i < experts; ++i) {
    const double angle =
        2 * std::acos(-1.0) * static_cast<double>(i) / static_cast<double>(experts);
    corners.x.push_back(std::cos(angle));
    corners.y.push_back(std::sin(angle));
    corners.names.push_back(expert_name(i));
  }
  for (size_t kind = 0; kind < routing.kinds.size(); ++kind) {
    explain::Curve points{.kind = explain::Curve::Kind::kPoints, .label = routing.kinds[kind]};
    for (int64_t item = 0; item < items; ++item) {
      if (routing.kind_of[static_cast<size_t>(item)] != static_cast<int64_t>(kind)) continue;
      double x = 0, y = 0;
      for (int64_t i = 0; i < experts; ++i) {
        const double gate = routing.gates[item][i].item<double>();
        x += gate * corners.x[static_cast<size_t>(i)];
        y += gate * corners.y[static_cast<size_t>(i)];
      }
      points.x.push_back(x);
      points.y.push_back(y);
    }
    if (!points.x.empty()) plot.curves.push_back(std::move(points));
  }
  plot.curves.push_back(std::move(corners));
  return plot;
}

// The share of each expert, an epoch at a time; the last is shown first.
std::optional<explain::Plot> loads_over_training(const torch::Tensor& loads) {
  std::vector<explain::BarRow> epochs;
  for (int64_t epoch = 0; epoch < loads.size(0); ++epoch) {
    const double mean = loads[epoch].mean().item<double>();
    if (mean == 0) break;
    const torch::Tensor share = (loads[epoch] / mean).to(torch::kFloat64).contiguous();
    epochs.push_back(
        {"load / mean load", {share.data_ptr<double>(), share.data_ptr<double>() + share.numel()}});
  }
  if (epochs.empty()) return std::nullopt;
  explain::Plot plot = explain::bars(
      {.title = "Load while learning", .x_label = "expert", .y_label = "load / mean load"}, "epoch",
      epochs);
  if (plot.slider) plot.slider->chosen = static_cast<int>(epochs.size()) - 1;
  return plot;
}

}  // namespace

explain::Explanation who_does_what(const Routing& routing,
                                   const nn::MixtureOfExpertsOptions& options,
                                   const std::string& title) {
  explain::Explanation out;
  out.title = title;
  out.view = explain::View::kMatrix;
  out.score = options.noise ? "x·W_g, with noise while learning" : "x·W_g";
  out.normaliser = options.k == options.experts ? "softmax"
                   : options.k == 1             ? "softmax, the largest kept"
                                    : fmt::format("softmax over the {} largest", options.k);
  out.structure = "all experts";
  out.scale = "1";
  out.query_label = "mean over";
  out.key_label = "expert";
  for (int64_t i = 0; i < options.experts; ++i) out.keys.emplace_back().text = expert_name(i);
  const torch::Tensor gates = routing.gates.to(torch::kCPU, torch::kFloat32);
  const torch::Tensor kind = torch::tensor(at::ArrayRef<int64_t>(routing.kind_of), torch::kLong);
  auto& dense = out.maps.emplace_back().dense;
  for (size_t row = 0; row < routing.kinds.size(); ++row) {
    const torch::Tensor mine = gates.index({kind == static_cast<int64_t>(row)});
    if (mine.size(0) == 0) continue;
    out.queries.emplace_back().text = routing.kinds[row];
    const torch::Tensor mean = mine.mean(0).contiguous();
    dense.insert(dense.end(), mean.data_ptr<float>(), mean.data_ptr<float>() + options.experts);
  }
  out.plots.push_back(simplex(routing));
  if (auto plot = loads_over_training(routing.loads.cpu())) out.plots.push_back(std::move(*plot));
  out.notes.push_back(
      "A cell is the mean gate. An expert learns from the items that the gate sends to it. An "
      "expert "
      "that was not selected gets no gradient.");
  return out;
}

explain::Plot curve_plot(const CurvePoints& points, int64_t experts) {
  explain::Plot plot{.title = "Which expert owns which piece",
                     .x_label = points.x_label,
                     .y_label = points.y_label};
  plot.curves.push_back(
      {.kind = explain::Curve::Kind::kPoints, .label = "measured", .x = points.x, .y = points.y});
  plot.curves.push_back({.label = "mixture", .x = points.at, .y = points.mixed});
  for (int64_t i = 0; i < experts; ++i) {
    explain::Curve own{.label = expert_name(i), .x = points.at};
    bool any = false;
    for (size_t p = 0; p < points.at.size(); ++p) {
      any = any || points.owner[p] == i;
      own.y.push_back(points.owner[p] == i ? points.own[p]
                                           : std::numeric_limits<double>::quiet_NaN());
    }
    if (any) plot.curves.push_back(std::move(own));
  }
  return plot;
}

}  // namespace fovea::systems::mixture_of_experts
