#include "systems/cost/view.h"

#include <fmt/format.h>

#include <cmath>

#include "systems/cost/cost.h"

namespace fovea::systems::cost {
namespace {

constexpr double kSeen = 64 * 1024;  // bytes: pages that the process has already may hide less

}  // namespace

explain::Explanation picture(const Model& model, int64_t row) {
  const bool over_n = model.over == "n";
  const torch::Tensor swept = model.swept(row);
  const double n0 = model.lengths[row][0].item<double>(), d0 = model.widths[row][0].item<double>();
  explain::Explanation out;
  out.title = over_n ? fmt::format("Time of one layer, width {:g}", d0)
                     : fmt::format("Time of one layer, length {:g}", n0);
  out.view = explain::View::kCurve;
  out.score = "q·k / √d";
  out.normaliser = "softmax";
  out.structure = "all";
  out.scale = over_n ? fmt::format("1/√{:g}", d0) : "1/√d";
  explain::Plot time;
  time.title = "Measured time and the predicted crossing";
  time.x_label = over_n ? "length n" : "width d";
  time.y_label = "seconds";
  time.log_x = time.log_y = true;
  explain::Plot memory = time, speed = time;
  memory.title = "Measured memory of one call, at its highest";
  memory.y_label = "bytes";
  speed.title = "Measured speed";
  speed.y_label = "GFLOP/s";
  explain::Curve stored{.label = "the n × n weights, if they were stored"};
  for (size_t layer = 0; layer < kLayers.size(); ++layer) {
    explain::Curve seconds, rate, held;
    seconds.label = rate.label = held.label = kLayers[layer];
    for (int64_t i = 0; i < swept.size(0); ++i) {
      const double measured = model.seconds[row][static_cast<int64_t>(layer)][i].item<double>(),
                   bytes = model.bytes[row][static_cast<int64_t>(layer)][i].item<double>();
      for (explain::Curve* curve : {&seconds, &rate, &held})
        curve->x.push_back(swept[i].item<double>());
      seconds.y.push_back(measured);
      rate.y.push_back(model.operations(layer, row, i) / measured / 1e9);
      held.y.push_back(bytes >= kSeen ? bytes : std::nan(""));  // less is not told from nothing
    }
    time.curves.push_back(seconds);
    speed.curves.push_back(rate);
    memory.curves.push_back(held);
  }
  for (int64_t i = 0; i < swept.size(0); ++i) {
    stored.x.push_back(swept[i].item<double>());
    stored.y.push_back(4 * std::pow(model.lengths[row][i].item<double>(), 2));
  }
  memory.curves.push_back(stored);
  const auto mark = [&](const std::string& label, double x) {
    explain::Marker marker;
    marker.label = label;
    marker.x = x;
    time.markers.push_back(marker);
  };
  const double last = swept[-1].item<double>();
  if (model.predicted(row) <= last) mark("predicted: n = 4d", model.predicted(row));
  const double measured = model.crossing(row);
  if (std::isfinite(measured)) mark("measured", measured);
  out.plots = {time, speed, memory};
  explain::Table table;
  table.title = "By the formulas, at n = d = 1000";
  table.columns = {"layer", "operations", "steps that must wait for each other",
                   "longest path between two items"};
  const auto add = [&](const char* name, double operations, const char* waits, const char* path) {
    table.rows.push_back({name, fmt::format("{:.0f}·10⁹", operations / 1e9), waits, path});
  };
  add("self-attention", attention_operations(1000, 1000), "1", "1");
  add("self-attention with its projections",
      attention_operations(1000, 1000) + projection_operations(1000, 1000), "1", "1");
  add("LSTM", lstm_operations(1000, 1000), "n = 1000", "n = 1000");
  add("convolution, k = 3", convolution_operations(1000, 1000, 3), "1",
      "n/k ≈ 333, or log₃ n ≈ 6 dilated");
  out.tables = {table};
  const auto threads = static_cast<int64_t>(model.threads.item<double>());
  out.notes = {fmt::format("Measured with {} thread{}, one sequence, float32. The n × n weights "
                           "are never stored by fovea::attend. Memory is what the process holds at "
                           "its highest during a call, less what it held before; below 64 KiB it "
                           "is not seen.",
                           threads, threads == 1 ? "" : "s"),
               fmt::format("By counting, the crossing at n = 4d lies at {} = {:g}{}.",
                           over_n ? "n" : "d", model.predicted(row),
                           model.predicted(row) <= last ? "" : ", beyond what was measured"),
               "An LSTM's steps wait for one another, so its time is far from its operation "
               "count; attention's crossing with it lies beyond n = 4d by as much "
               "as the LSTM's speed falls short of attention's."};
  return out;
}

}  // namespace fovea::systems::cost
