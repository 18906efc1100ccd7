#include "systems/nadaraya_watson/consistency.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/random.h"

namespace fovea::systems::nadaraya_watson {
namespace {

constexpr int64_t kFewest = 8, kMost = 2000, kDraws = 8;

// A part of the rows with everything else of the model.
Model part_of(const Model& model, Shape shape, const torch::Tensor& rows, double bandwidth) {
  shape.rows = rows.size(0);
  Model part(shape, model.kernel);
  part.x.copy_(model.x.index_select(0, rows));
  part.y.copy_(model.y.index_select(0, rows));
  part.mean.copy_(model.mean);
  part.deviation.copy_(model.deviation);
  part.bandwidth.fill_(bandwidth);
  if (model.metric.defined()) part.metric.copy_(model.metric);
  return part;
}

}  // namespace

std::vector<ErrorAtRows> errors_by_rows(const Model& model, const Shape& shape) {
  const torch::NoGradGuard guard;
  const int64_t all = model.x.size(0);
  std::vector<int64_t> order(static_cast<size_t>(all));
  std::iota(order.begin(), order.end(), 0);
  data::Random random(1);
  std::vector<ErrorAtRows> out;
  for (int64_t rows = std::min(all, kMost); rows >= std::min(all, kFewest); rows /= 2) {
    const double bandwidth = model.bandwidth.item<double>() *
                             std::pow(static_cast<double>(all) / static_cast<double>(rows),
                                      1 / (4 + static_cast<double>(shape.inputs)));
    const int64_t draws = rows == all ? 1 : kDraws;
    double sum = 0;
    for (int64_t draw = 0; draw < draws; ++draw) {
      random.shuffle(order);
      const torch::Tensor which = torch::tensor(at::ArrayRef<int64_t>(order)).slice(0, 0, rows);
      const LeaveOneOut found =
          leave_one_out(rows == all ? model : part_of(model, shape, which, bandwidth));
      sum += std::sqrt(found.criterion) / static_cast<double>(draws);
    }
    out.push_back({rows, sum});
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace fovea::systems::nadaraya_watson
