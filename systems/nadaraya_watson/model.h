// Nadaraya-Watson regression (Nadaraya 1964, Watson 1964):
//   f(x) = sum_i a_i y_i,  a_i = K(u_i) / sum_j K(u_j),  u_i = |D (x - x_i)| / h
// The kernel's ratio is computed in log space, as a softmax over log K(u): far from all data the
// nearest points still share the weight, where K itself would underflow to 0/0. Silverman's kernel,
// which goes negative and has no logarithm, takes the plain ratio.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "fovea/attend.h"

namespace fovea::systems::nadaraya_watson {

// In the order of KernelName.
const std::vector<std::string>& kernel_names();
KernelName kernel_of(const std::string& name);

struct Shape {
  int64_t rows = 0, inputs = 1;
  std::string metric = "none";  // none, w (one number), diagonal, full
  torch::ScalarType type = torch::kFloat64;
};

struct Model : torch::nn::Module {
  Model(const Shape&, KernelName);

  // Raw inputs [n, inputs] to the scale the kernel works on.
  torch::Tensor scaled(const torch::Tensor& raw) const;
  // Predictions [n] at scaled inputs; NaN where a compact kernel sees no point.
  torch::Tensor predict(const torch::Tensor& query) const;
  // Predictions for training rows, each from all the other rows. Nothing is fitted again: the
  // structure leaves the row out. With a gradient for the metric.
  torch::Tensor without_self(const torch::Tensor& rows) const;

  // The call of attend that is this mechanism. bandwidth [1] or [1, 1, queries].
  Choices choices(const torch::Tensor& bandwidth, Structure structure = Dense{}) const;
  // The bandwidth for queries: h, or the distance to the k-th neighbour. With `rows`, the query
  // itself is not counted.
  torch::Tensor bandwidth_at(const torch::Tensor& query, const torch::Tensor& rows = {}) const;

  torch::Tensor x, y;             // [rows, inputs] scaled, [rows]
  torch::Tensor mean, deviation;  // [inputs], of the raw inputs
  torch::Tensor bandwidth;        // [1]
  torch::Tensor neighbours;       // [1], int64: k, or 0 for a fixed bandwidth
  torch::Tensor metric;  // parameter [1], [inputs] or [inputs, inputs]; undefined without one
  KernelName kernel;

 private:
  torch::Tensor full_metric() const;
  torch::Tensor look(const torch::Tensor& query, const torch::Tensor& bandwidth,
                     Structure structure) const;
};

struct LeaveOneOut {
  double mse = 0;  // over the rows where it is defined
  double criterion =
      0;  // over all rows, those without a neighbour charged what the mean of the others would cost
  int64_t undefined = 0;  // rows that saw no other point
};
// At the model's present bandwidth and metric.
LeaveOneOut leave_one_out(const Model&);

// 0.9 min(sd, IQR/1.34) n^(-1/5), the mean over columns: the start of the search.
double silverman_start(const torch::Tensor& x);

struct GridPoint {
  double h, criterion, mse;
  int64_t undefined;
};
struct Search {
  std::vector<GridPoint> grid;  // ascending
  double best = 0;
};
struct SearchPlan {
  double low = 0, high = 0;  // of the grid, spaced evenly in log h
  int64_t points = 30;
  int64_t refine = 24;  // golden-section steps about the best point
  int64_t alone = 0;    // rows a bandwidth may leave without a neighbour; one that leaves more is
                        // taken only where all do
};
// `step` is called after each bandwidth tried.
Search search_bandwidth(Model&, const SearchPlan&, const std::function<void(int64_t)>& step);

}  // namespace fovea::systems::nadaraya_watson
