#include "systems/nadaraya_watson/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

namespace fovea::systems::nadaraya_watson {
namespace {

// The number of rows that are predicted together: the mask that leaves a row out of its own
// prediction takes a byte for each pair.
int64_t chunk_rows(int64_t rows) {
  return std::clamp<int64_t>((int64_t{1} << 24) / std::max<int64_t>(rows, 1), 64, 4096);
}

}  // namespace

const std::vector<std::string>& kernel_names() {
  static const std::vector<std::string> names = {
      "gaussian",   "laplace",      "logistic", "sigmoid",   "silverman", "cauchy", "box",
      "triangular", "epanechnikov", "quartic",  "triweight", "tricube",   "cosine"};
  return names;
}

KernelName kernel_of(const std::string& name) {
  const auto& names = kernel_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw InvalidArgument(fmt::format("kernel: '{}' is not one", name));
  return static_cast<KernelName>(found - names.begin());
}

Model::Model(const Shape& shape, KernelName name) : kernel(name) {
  const auto real = torch::dtype(shape.type);
  x = register_buffer("x", torch::zeros({shape.rows, shape.inputs}, real));
  y = register_buffer("y", torch::zeros({shape.rows}, real));
  mean = register_buffer("mean", torch::zeros({shape.inputs}, real));
  deviation = register_buffer("deviation", torch::ones({shape.inputs}, real));
  bandwidth = register_buffer("bandwidth", torch::ones({1}, real));
  neighbours = register_buffer("neighbours", torch::zeros({1}, torch::kInt64));
  if (shape.metric == "w") metric = register_parameter("metric", torch::ones({1}, real));
  if (shape.metric == "diagonal")
    metric = register_parameter("metric", torch::ones({shape.inputs}, real));
  if (shape.metric == "full") metric = register_parameter("metric", torch::eye(shape.inputs, real));
}

torch::Tensor Model::scaled(const torch::Tensor& raw) const {
  return (raw.to(x.options()) - mean) / deviation;
}

torch::Tensor Model::full_metric() const {
  if (!metric.defined()) return {};
  return metric.dim() == 1 ? metric.expand({x.size(1)}) : metric;
}

Choices Model::choices(const torch::Tensor& h, Structure structure) const {
  return {.score = Kernel{kernel, h, full_metric()},
          .normaliser =
              kernel == KernelName::kSilverman ? Normaliser(KernelRatio{}) : Normaliser(Softmax{}),
          .structure = std::move(structure)};
}

torch::Tensor Model::bandwidth_at(const torch::Tensor& query, const torch::Tensor& rows) const {
  const int64_t k = neighbours.item<int64_t>();
  if (k == 0) return bandwidth;
  const torch::NoGradGuard guard;  // which neighbour is the k-th is taken as constant
  torch::Tensor from = query, to = x;
  if (metric.defined()) {
    const torch::Tensor d = full_metric();
    from = d.dim() == 1 ? from * d : from.matmul(d.t());
    to = d.dim() == 1 ? to * d : to.matmul(d.t());
  }
  torch::Tensor distance = torch::cdist(from, to);  // [queries, rows]
  if (rows.defined())
    distance.scatter_(1, rows.unsqueeze(1), std::numeric_limits<double>::infinity());
  const int64_t available = x.size(0) - (rows.defined() ? 1 : 0);
  const torch::Tensor nearest =
      std::get<0>(distance.topk(std::min(k, available), 1, /*largest=*/false))
          .select(1, std::min(k, available) - 1);
  // k duplicates of the query: any positive bandwidth averages them.
  return nearest.clamp_min(1e-12).reshape({1, 1, -1});
}

// A second value of 1 for every point sums to the total of the weights: 1, or 0 if the query sees
// no point.
torch::Tensor Model::look(const torch::Tensor& query, const torch::Tensor& h,
                          Structure structure) const {
  const torch::Tensor values = torch::stack({y, torch::ones_like(y)}, 1);
  const torch::Tensor out =
      attend(query.reshape({1, 1, query.size(0), -1}), x.reshape({1, 1, x.size(0), -1}),
             values.reshape({1, 1, x.size(0), 2}), choices(h, std::move(structure)))
          .reshape({query.size(0), 2});
  const torch::Tensor seen = out.select(1, 1).detach().abs() > 0.5;
  return torch::where(seen, out.select(1, 0), torch::full({}, std::nan(""), out.options()));
}

torch::Tensor Model::predict(const torch::Tensor& query) const {
  std::vector<torch::Tensor> parts;
  for (const torch::Tensor& part : query.split(chunk_rows(x.size(0))))
    parts.push_back(look(part, bandwidth_at(part), Dense{}));
  return parts.empty() ? torch::empty({0}, x.options()) : torch::cat(parts);
}

torch::Tensor Model::without_self(const torch::Tensor& rows) const {
  const torch::Tensor query = x.index_select(0, rows);
  torch::Tensor mask = torch::ones({rows.size(0), x.size(0)}, x.options().dtype(torch::kBool));
  mask.scatter_(1, rows.unsqueeze(1), false);
  return look(query, bandwidth_at(query, rows),
              Keep{mask.reshape({1, 1, rows.size(0), x.size(0)})});
}

LeaveOneOut leave_one_out(const Model& model) {
  const torch::NoGradGuard guard;
  const int64_t rows = model.x.size(0);
  const torch::Tensor y = model.y.to(torch::kFloat64);
  LeaveOneOut out;
  double squares = 0, charged = 0;
  const double total = y.sum().item<double>();
  for (const torch::Tensor& part :
       torch::arange(rows, torch::dtype(torch::kInt64).device(model.x.device()))
           .split(chunk_rows(rows))) {
    const torch::Tensor truth = y.index_select(0, part);
    const torch::Tensor predicted = model.without_self(part).to(torch::kFloat64);
    const torch::Tensor seen = predicted.isfinite();
    squares += torch::where(seen, (truth - predicted).square(), torch::zeros_like(truth))
                   .sum()
                   .item<double>();
    const torch::Tensor others =
        (total - truth) / static_cast<double>(std::max<int64_t>(rows - 1, 1));
    charged += torch::where(seen, torch::zeros_like(truth), (truth - others).square())
                   .sum()
                   .item<double>();
    out.undefined += part.size(0) - seen.sum().item<int64_t>();
  }
  const int64_t defined = rows - out.undefined;
  out.mse = defined ? squares / static_cast<double>(defined) : std::nan("");
  out.criterion = rows ? (squares + charged) / static_cast<double>(rows) : 0;
  return out;
}

double silverman_start(const torch::Tensor& x) {
  const auto n = static_cast<double>(x.size(0));
  if (n < 2) return 1;
  const torch::Tensor sorted = std::get<0>(x.to(torch::kFloat64).sort(0));
  const torch::Tensor deviation = x.to(torch::kFloat64).std(0, /*unbiased=*/true);
  const torch::Tensor quartiles = sorted.index({static_cast<int64_t>(0.75 * (n - 1))}) -
                                  sorted.index({static_cast<int64_t>(0.25 * (n - 1))});
  const torch::Tensor spread =
      torch::where(quartiles > 0, torch::minimum(deviation, quartiles / 1.34), deviation);
  const double start = 0.9 * spread.mean().item<double>() * std::pow(n, -0.2);
  return start > 0 ? start : 1;
}

Search search_bandwidth(Model& model, const SearchPlan& plan,
                        const std::function<void(int64_t)>& step) {
  Search out;
  int64_t done = 0;
  const auto look = [&](double h) {
    model.bandwidth.fill_(h);
    const LeaveOneOut result = leave_one_out(model);
    out.grid.push_back({h, result.criterion, result.mse, result.undefined});
    step(++done);
    return out.grid.back();
  };
  const auto better = [&](const GridPoint& a, const GridPoint& b) {
    const int64_t left = std::max<int64_t>(a.undefined - plan.alone, 0),
                  right = std::max<int64_t>(b.undefined - plan.alone, 0);
    return left != right ? left < right : a.criterion < b.criterion;
  };
  for (int64_t i = 0; i < plan.points; ++i)
    look(plan.points > 1
             ? plan.low * std::pow(plan.high / plan.low,
                                   static_cast<double>(i) / static_cast<double>(plan.points - 1))
             : plan.low);
  const auto best = std::min_element(out.grid.begin(), out.grid.end(), better) - out.grid.begin();
  // Golden section in log h between the best point's neighbours.
  const auto last = static_cast<ptrdiff_t>(out.grid.size()) - 1;
  double a = std::log(out.grid[static_cast<size_t>(std::max<ptrdiff_t>(best - 1, 0))].h);
  double b = std::log(out.grid[static_cast<size_t>(std::min(best + 1, last))].h);
  const double ratio = (std::sqrt(5.0) - 1) / 2;
  if (plan.refine > 1 && b > a) {
    double c = b - ratio * (b - a), d = a + ratio * (b - a);
    GridPoint at_c = look(std::exp(c)), at_d = look(std::exp(d));
    for (int64_t i = 2; i < plan.refine; ++i) {
      if (!better(at_d, at_c)) {
        b = d;
        d = c;
        at_d = at_c;
        c = b - ratio * (b - a);
        at_c = look(std::exp(c));
      } else {
        a = c;
        c = d;
        at_c = at_d;
        d = a + ratio * (b - a);
        at_d = look(std::exp(d));
      }
    }
  }
  out.best = std::min_element(out.grid.begin(), out.grid.end(), better)->h;
  std::sort(out.grid.begin(), out.grid.end(),
            [](const GridPoint& p, const GridPoint& q) { return p.h < q.h; });
  model.bandwidth.fill_(out.best);
  return out;
}

}  // namespace fovea::systems::nadaraya_watson
