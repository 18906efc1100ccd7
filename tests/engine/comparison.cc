#include "tests/engine/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/reference/reference.h"
#include "tests/engine/arrays.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Storage;
using engine::DType;
using engine::View;

constexpr double kUlps = 16;

double ulp_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return std::numeric_limits<double>::epsilon();
    case DType::kBFloat16:
      return 0x1p-8;
    case DType::kFloat16:
      return 0x1p-10;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}
DType arithmetic_of(DType storage) {
  return storage == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

double largest(const View& view) {
  double most = 0;
  Storage::each(view, [&](int64_t at) {
    const double x = std::fabs(Storage::get(view, at));
    if (std::isfinite(x)) most = std::max(most, x);
  });
  return most;
}

// What rounding is measured in: the arithmetic's unit, and for a half type the storage's, in which
// the output that backward starts from is rounded too.
struct Rounding {
  double arithmetic, storage;
  explicit Rounding(DType dtype)
      : arithmetic(ulp_of(arithmetic_of(dtype))),
        storage(dtype == arithmetic_of(dtype) ? 0 : ulp_of(dtype)) {}
};

// `floor`: the least scale its rounding errors are measured on, for sums that cancel.
template <class Truth, class Naive>
Agreement agreement(const std::string& name, const View& got, const Truth* truth,
                    const Naive* naive, Rounding rounding, double floor) {
  Agreement result{.array = name};
  double scale = floor;
  int64_t n = 0;
  Storage::each(got, [&](int64_t) {
    const auto expected = static_cast<double>(truth[n]);
    if (std::isfinite(expected)) {
      const auto difference = static_cast<double>(naive[n] - truth[n]);
      result.naive = std::max(result.naive, std::fabs(difference));
      scale = std::max(scale, std::fabs(expected));
    }
    ++n;
  });
  result.bound = 2 * result.naive + (kUlps * rounding.arithmetic + 2 * rounding.storage) * scale;
  n = 0;
  Storage::each(got, [&](int64_t at) {
    const auto expected = static_cast<double>(truth[n]);
    const double value = Storage::get(got, at);
    double error = std::fabs(static_cast<double>(value - truth[n]));
    if (!std::isfinite(expected)) error = value == expected ? 0 : INFINITY;
    if (!(error <= result.error)) result.error = error;
    ++n;
  });
  result.within = result.error <= result.bound;
  const double unit = std::max(result.naive, (rounding.arithmetic + rounding.storage) * scale);
  result.multiple = unit > 0 ? result.error / unit : 0;
  return result;
}

template <class Truth, class Naive>
std::vector<Agreement> compare_as(cases::Built& built) {
  const engine::Problem& p = built.problem;
  const Rounding rounding(p.query.dtype);
  int64_t empty_rows = -1;
  built.result.empty_rows = &empty_rows;
  engine::forward(p, built.result, serial());
  engine::backward(p, built.result, built.gradients, serial());
  const auto truth = reference::forward<Truth>(p);
  const auto naive = reference::forward<Naive>(p);
  const auto d_truth = reference::backward<Truth>(p, built.gradients.output, built.gradients.lse);
  const auto d_naive = reference::backward<Naive>(p, built.gradients.output, built.gradients.lse);

  std::vector<Agreement> all;
  all.push_back(agreement("output", built.result.output, truth.output.data.data(),
                          naive.output.data.data(), rounding, 0));
  if (built.result.lse) {
    all.push_back(
        agreement("lse", built.result.lse, truth.lse.data(), naive.lse.data(), rounding, 1));
  }
  const auto rows = static_cast<double>(truth.empty_rows);
  all.push_back({.array = "empty_rows",
                 .error = std::fabs(rows - static_cast<double>(empty_rows)),
                 .within = truth.empty_rows == empty_rows});
  const double floor = std::max({1.0, largest(p.query), largest(p.key)});
  const auto gradients = arrays_of(built.gradients);
  const auto d_truths = arrays_of(d_truth);
  const auto d_naives = arrays_of(d_naive);
  for (size_t n = 0; n < gradients.size(); ++n) {
    all.push_back(agreement("d " + gradients[n].name, gradients[n].view, d_truths[n]->data.data(),
                            d_naives[n]->data.data(), rounding, floor));
  }
  return all;
}

double loss(const cases::Built& built) {
  engine::forward(built.problem, built.result, serial());
  double sum = 0;
  const auto add = [&](const View& value, const View& gradient) {
    if (!value) return;
    std::vector<double> gradients;
    Storage::each(gradient, [&](int64_t at) { gradients.push_back(Storage::get(gradient, at)); });
    size_t n = 0;
    Storage::each(value, [&](int64_t at) {
      const double x = Storage::get(value, at);
      if (std::isfinite(x)) sum += x * gradients[n];
      ++n;
    });
  };
  add(built.result.output, built.gradients.output);
  add(built.result.lse, built.gradients.lse);
  return sum;
}

}  // namespace

std::vector<Agreement> compare(cases::Built& built) {
  if (built.problem.query.dtype == DType::kFloat64) {
    return compare_as<long double, double>(built);
  }
  return compare_as<double, float>(built);
}

void expect_agreement(const cases::Case& c) {
  cases::Built built = cases::build(c);
  for (const Agreement& a : compare(built)) {
    EXPECT_TRUE(a.within) << c.name() << ": " << a.array << " off by " << a.error << ", allowed "
                          << a.bound << " (naive " << a.naive << ")";
  }
}

std::vector<std::string> check_differences(const cases::Case& c, int* kinks) {
  std::vector<std::string> wrong;
  cases::Built built = cases::build(c);
  const double middle = loss(built);
  engine::backward(built.problem, built.result, built.gradients, serial());
  const auto arrays = arrays_of(built.problem);
  const auto gradients = arrays_of(built.gradients);
  for (size_t a = 0; a < arrays.size(); ++a) {
    const View& view = arrays[a].view;
    std::vector<double> value, direction;
    double slope = 0, size = 0;
    Storage::each(view, [&](int64_t at) {
      value.push_back(Storage::get(view, at));
      direction.push_back(built.storage.uniform(-1, 1));
    });
    size_t n = 0;
    Storage::each(gradients[a].view, [&](int64_t at) {
      const double part = Storage::get(gradients[a].view, at) * direction[n++];
      slope += part;
      size += std::fabs(part);
    });
    const auto moved = [&](double step) {
      size_t m = 0;
      Storage::each(view, [&](int64_t at) {
        Storage::set(view, at, value[m] + step * direction[m]);
        ++m;
      });
      return loss(built);
    };
    // A kink lies within the step where the slopes to its two sides differ, which a smooth loss's
    // do by O(step).
    bool agrees = false, smooth = false;
    for (const double step : {1e-5, 1e-6, 1e-7}) {
      const double up = moved(step), down = moved(-step);
      agrees = std::fabs((up - down) / (2 * step) - slope) <= 1e-6 * (1 + size);
      smooth =
          std::fabs(up - 2 * middle + down) / step <= 1e-2 * (1 + size) * std::sqrt(step / 1e-5);
      if (agrees) break;
    }
    moved(0);
    if (agrees) continue;
    if (!smooth) {
      ++*kinks;
      continue;
    }
    const double difference = (moved(1e-6) - moved(-1e-6)) / 2e-6;
    moved(0);
    wrong.push_back(arrays[a].name + ": difference " + std::to_string(difference) + ", gradient " +
                    std::to_string(slope));
  }
  return wrong;
}

}  // namespace fovea
