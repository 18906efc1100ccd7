// How the bandwidth is found, or the number of neighbours: by a rule, or by leave-one-out.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "systems/nadaraya_watson/task.h"
#include "train/descent/fit.h"
#include "train/fields.h"

namespace fovea::systems::nadaraya_watson {

void Regression::fit(train::Fit& fit) {
  const std::string& rule = run_options_.options.text("bandwidth");
  const double start = silverman_start(model_->x);
  const torch::NoGradGuard guard;
  if (model_->kernel == KernelName::kSilverman)
    fit.progress().line(
        "kernel=silverman goes below zero: weights may be negative and their sum may vanish; they "
        "are no probabilities");
  if (rule == "fixed") {
    const double h = run_options_.options.number("h");
    if (h <= 0) throw UsageError("--set h: a fixed bandwidth needs --set h=NUMBER above 0");
    model_->bandwidth.fill_(h);
  } else if (rule == "silverman") {
    model_->bandwidth.fill_(start);
  } else if (rule == "nearest") {
    find_neighbours(fit);
  } else {
    find_bandwidth(fit);
  }
  single_ = leave_one_out(*model_);
  fit.record({{"bandwidth", model_->bandwidth.item<double>()},
              {"neighbours", model_->neighbours.item<int64_t>()},
              {"loo_mse", single_.criterion},
              {"loo_undefined", single_.undefined}});
  if (!model_->metric.defined()) return;
  const torch::AutoGradMode enabled(true);
  GradientTask::fit(fit);
}

void Regression::find_bandwidth(train::Fit& fit) {
  const double start = silverman_start(model_->x);
  const int64_t points = run_options_.options.integer("grid");
  const int64_t refine = refinements();
  const SearchPlan plan{.low = start * run_options_.options.number("grid_low"),
                        .high = start * run_options_.options.number("grid_high"),
                        .points = points,
                        .refine = refine,
                        .alone = static_cast<int64_t>(run_options_.options.number("alone") *
                                                      static_cast<double>(shape_.rows))};
  search_ = search_bandwidth(*model_, plan, [&](int64_t done) {
    fit.progress().step(done, points + refine, "bandwidth by leave-one-out");
    fit.stop_if_interrupted("in the bandwidth search");
  });
}

int64_t Regression::refinements() const {
  const int64_t given = run_options_.options.integer("refine");
  return given >= 0 ? given : shape_.rows > 5000 ? 0 : 24;
}

// 1, 2, 3, 5, 8, … up to half the rows; none where k is given.
std::vector<int64_t> Regression::neighbour_counts() const {
  std::vector<int64_t> counts;
  if (run_options_.options.integer("k") > 0) return counts;
  for (int64_t k = 1, next = 2; k <= std::max<int64_t>(shape_.rows / 2, 1);
       std::tie(k, next) = std::pair(next, k + next))
    counts.push_back(k);
  return counts;
}

// By leave-one-out.
void Regression::find_neighbours(train::Fit& fit) {
  const int64_t given = run_options_.options.integer("k");
  if (given >= shape_.rows)
    throw UsageError(
        fmt::format("--set k={}: expected fewer than the rows, {}", given, shape_.rows));
  if (given > 0) {
    model_->neighbours.fill_(given);
    return;
  }
  int64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (const int64_t k : neighbour_counts()) {
    model_->neighbours.fill_(k);
    const LeaveOneOut result = leave_one_out(*model_);
    search_.grid.push_back(
        {static_cast<double>(k), result.criterion, result.mse, result.undefined});
    if (result.criterion < least) {
      least = result.criterion;
      best = k;
    }
    fit.stop_if_interrupted("in the search for the number of neighbours");
  }
  model_->neighbours.fill_(best);
}

// The pictures draw the search point by point, so the bandwidths that were tried must be there.
void Regression::restore_search(const train::Fields& facts) {
  for (const Json& point : facts.list("grid")) {
    const auto number = [](const Json& value) { return value.is_number() || value.is_null(); };
    if (!point.is_array() || point.size() != 4 || !point[0].is_number() ||
        !std::all_of(point.begin(), point.end(), number) || !point[3].is_number_integer())
      facts.refuse("grid", "lists of bandwidth, criterion, error and a count");
    const auto value = [&](size_t i) {
      return point[i].is_null() ? std::nan("") : point[i].get<double>();
    };
    if (!search_.grid.empty() && value(0) < search_.grid.back().h)
      facts.refuse("grid", "bandwidths in ascending order");
    search_.grid.push_back({value(0), value(1), value(2), point[3].get<int64_t>()});
  }
  const std::string& rule = run_options_.options.text("bandwidth");
  const auto tried = static_cast<int64_t>(search_.grid.size());
  const int64_t grid = rule == "loo"       ? run_options_.options.integer("grid")
                       : rule == "nearest" ? static_cast<int64_t>(neighbour_counts().size())
                                           : 0;
  // A grid of one bandwidth is not refined.
  const int64_t all = rule == "loo" ? grid + refinements() : grid;
  if (tried != grid && tried != all)
    facts.refuse("grid", fmt::format("{} points, not {}", all, tried));
}

}  // namespace fovea::systems::nadaraya_watson
