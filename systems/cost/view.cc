#include "systems/cost/view.h"

#include <fmt/format.h>

#include <cmath>

#include "systems/cost/cost.h"

namespace fovea::systems::cost {

explain::Explanation picture(const Model& model) {
  const auto d = static_cast<double>(model.d);
  explain::Explanation out;
  out.title = fmt::format("Time of one layer, width {}", model.d);
  out.view = explain::View::kCurve;
  out.score = "q·k / √d";
  out.normaliser = "softmax";
  out.structure = "all";
  out.scale = fmt::format("1/√{:g}", d);
  explain::Plot time;
  time.title = "Measured time and the predicted crossing";
  time.x_label = "length n";
  time.y_label = "seconds";
  time.log_x = time.log_y = true;
  explain::Plot memory = time, speed = time;
  memory.title = "Numbers held for the backward pass, if the weights were stored";
  memory.y_label = "numbers";
  speed.title = "Measured speed";
  speed.y_label = "GFLOP/s";
  for (size_t layer = 0; layer < kLayers.size(); ++layer) {
    explain::Curve seconds, rate, held;
    seconds.label = rate.label = held.label = kLayers[layer];
    for (int64_t i = 0; i < model.sizes.size(0); ++i) {
      const auto n = model.sizes[i].item<double>();
      const double measured = model.seconds[static_cast<int64_t>(layer)][i].item<double>();
      for (explain::Curve* curve : {&seconds, &rate, &held}) curve->x.push_back(n);
      seconds.y.push_back(measured);
      rate.y.push_back(model.operations(layer, static_cast<int64_t>(n)) / measured / 1e9);
      held.y.push_back(layer == 0 ? n * n : layer == 1 ? 6 * n * d : n * d);
    }
    time.curves.push_back(seconds);
    speed.curves.push_back(rate);
    memory.curves.push_back(held);
  }
  const auto mark = [&](const std::string& label, double x) {
    explain::Marker marker;
    marker.label = label;
    marker.x = x;
    time.markers.push_back(marker);
  };
  mark("predicted: n = 4d", predicted_crossing(d));
  const double measured = model.crossing();
  if (std::isfinite(measured)) mark("measured", measured);
  out.plots = {time, speed, memory};
  explain::Table table;
  table.title = "By the formulas, at n = d = 1000";
  table.columns = {"layer", "operations", "steps that must wait for each other",
                   "longest path between two items"};
  const auto row = [&](const char* name, double operations, const char* waits, const char* path) {
    table.rows.push_back({name, fmt::format("{:.0f}·10⁹", operations / 1e9), waits, path});
  };
  row("self-attention", attention_operations(1000, 1000), "1", "1");
  row("self-attention with its projections",
      attention_operations(1000, 1000) + projection_operations(1000, 1000), "1", "1");
  row("LSTM", lstm_operations(1000, 1000), "n = 1000", "n = 1000");
  row("convolution, k = 3", convolution_operations(1000, 1000, 3), "1",
      "n/k ≈ 333, or log₃ n ≈ 6 dilated");
  out.tables = {table};
  out.notes = {fmt::format("Measured with {} threads, one sequence, float32. The n × n weights "
                           "are never stored by fovea::attend; the memory plot shows what "
                           "storing them would take.",
                           static_cast<int64_t>(model.threads.item<double>())),
               "An LSTM's steps wait for one another, so its time is far from its operation "
               "count; attention's crossing with it lies beyond n = 4d by as much "
               "as the LSTM's speed falls short of attention's."};
  return out;
}

}  // namespace fovea::systems::cost
