#include "tests/engine/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/call/view.h"
#include "engine/reference/reference.h"
#include "tests/engine/arrays.h"
#include "tests/engine/bounds.h"
#include "tests/engine/cancellation.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Storage;
using engine::DType;
using engine::View;

// Looser than twice the naive run, each for its reason:
// kUlps units in the last place of the array's scale: the naive run is lucky where a row has one or
// two keys (its error is 0 then).
using bounds::kUlps;
// What flushing to 0 loses: up to the smallest normal number a key of the row. 12.2 seen.
constexpr double kFlushed = 24;
// What a half type rounds, half a unit each: the result; the weights, where products are made in
// bfloat16 (they add up to 1, so that their errors do not exceed one weight's); and the output that
// backward starts from, which the row term dO.o carries into a gradient, through weights too. One
// and a half in all. Held by the half types of sweep_test, fuzz_test and bf16/units_test.
constexpr double kStorageUlps = 2;
// Scores of 1e4 and kernels at the edge of their support: where the truth itself moves when the
// inputs move by a unit in the last place, a few times that, for the steps between: products,
// their sum, the exponential. 1.8 seen.
constexpr double kSensitive = 4;
// Additive scores of 1e4 are sums of weight x tanh. Moving the inputs within a unit moves a term by
// its weight's 1/sqrt(3) = 0.58 units, root mean square. Ours makes tanh as 1 - 2 / (1 + uv) from
// two exponentials: 2 (1/4 of their errors, 2 units each and 1/2 for the product, and 1/2 of the
// reciprocal's 1) = 3.25 units of the weight; that over 0.58, and 1 for the sum, is 6.6. What the
// truth moves is drawn once, and may be half of its root mean square: 13.2. 10.5 seen, at
// additive/softmax_sink/prefix with scores of 1e4 in sweep_test.
constexpr double kSensitiveTanh = 14;

double sensitive_of(const engine::Problem& p) {
  const bool tanh = std::holds_alternative<engine::Additive>(p.score.kind) ||
                    std::holds_alternative<engine::GatedAdditive>(p.score.kind);
  return tanh ? kSensitiveTanh : kSensitive;
}

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
      : arithmetic(ulp_of(engine::arithmetic_of(dtype))),
        storage(dtype == engine::arithmetic_of(dtype) ? 0 : ulp_of(dtype)) {}
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
  // Below the smallest normal number anything is as good as 0.
  result.bound = 2 * result.naive +
                 (kUlps * rounding.arithmetic + kStorageUlps * rounding.storage) * scale +
                 kFlushed * std::numeric_limits<float>::min();
  n = 0;
  Storage::each(got, [&](int64_t at) {
    const auto expected = static_cast<double>(truth[n]);
    const double value = Storage::get(got, at);
    double error = std::fabs(static_cast<double>(value - truth[n]));
    if (!std::isfinite(expected)) error = value == expected ? 0 : INFINITY;
    if (std::isnan(expected) && std::isnan(value)) error = 0;
    if (!(error <= result.error)) result.error = error;
    ++n;
  });
  result.within = result.error <= result.bound;
  constexpr double kTiny = std::numeric_limits<float>::min();
  const double unit =
      std::max({result.naive, (rounding.arithmetic + rounding.storage) * scale, kTiny});
  result.multiple = result.error / unit;
  return result;
}

// A run of the reference: outputs and gradients as one list of arrays.
template <class T>
struct Run {
  reference::Forward<T> forward;
  reference::Backward<T> backward;
  std::vector<const std::vector<T>*> arrays;  // output, lse (may be empty), then the gradients

  explicit Run(const cases::Built& built)
      : forward(reference::forward<T>(built.problem)),
        backward(
            reference::backward<T>(built.problem, built.gradients.output, built.gradients.lse)) {
    arrays = {&forward.output.data, &forward.lse};
    for (const auto* gradient : arrays_of(backward)) arrays.push_back(&gradient->data);
  }
};

// How far the truth itself moves when every input moves by at most one unit in its last place: what
// no arithmetic of that precision can promise. One number for each array of a run.
template <class Truth>
std::vector<double> sensitivity(cases::Built& built, const Run<Truth>& truth, double ulp) {
  std::vector<double> moved(truth.arrays.size(), 0.0);
  const auto arrays = arrays_of(built.problem);
  std::vector<Numbers> kept;
  for (const NamedView& array : arrays) kept.push_back(numbers(array.view));
  for (int sample = 0; sample < 3; ++sample) {
    for (const NamedView& array : arrays) {
      Storage::each(array.view, [&](int64_t at) {
        const double x = Storage::get(array.view, at);
        Storage::set(array.view, at, x + x * built.storage.uniform(-ulp, ulp));
      });
    }
    const Run<Truth> other(built);
    for (size_t a = 0; a < moved.size(); ++a) {
      for (size_t n = 0; n < truth.arrays[a]->size(); ++n) {
        const auto difference = static_cast<double>((*other.arrays[a])[n] - (*truth.arrays[a])[n]);
        if (std::isfinite(difference)) moved[a] = std::max(moved[a], std::fabs(difference));
      }
    }
    for (size_t a = 0; a < arrays.size(); ++a) assign(arrays[a].view, kept[a]);
  }
  return moved;
}

// Runs forward; the number of rows that saw no key.
int64_t forward_empty_rows(cases::Built& built, const engine::Result& result,
                           const engine::Parallel& parallel) {
  int64_t empty_rows = -1;
  engine::Result counting = result;
  counting.empty_rows = &empty_rows;
  engine::forward(built.problem, counting, parallel);
  return empty_rows;
}

// What was written, in the order of a Run's arrays, of which there may be more.
template <class Truth, class Naive>
std::vector<Agreement> judge(cases::Built& built, const std::vector<NamedView>& got,
                             int64_t empty_rows) {
  const engine::Problem& p = built.problem;
  const Rounding rounding(p.query.dtype);
  const Run<Truth> truth(built);
  const Run<Naive> naive(built);
  // Gradients are products of the others' elements.
  double operands = std::max(1.0, largest(p.query) * largest(p.key));
  for (const NamedView& array : arrays_of(p)) operands = std::max(operands, largest(array.view));
  const auto pairs = static_cast<double>(cases::pairs(p));
  std::vector<Agreement> all;
  std::vector<double> moved, steep;
  for (size_t a = 0; a < got.size(); ++a) {
    if (!got[a].view) continue;
    // A sum of that many terms of either sign is of the order of the root of their number.
    const double terms = pairs / static_cast<double>(std::max<size_t>(1, truth.arrays[a]->size()));
    const double floor = a == 0 ? 0 : a == 1 ? 1 : operands * std::sqrt(std::max(1.0, terms));
    Agreement agreed = agreement(got[a].name, got[a].view, truth.arrays[a]->data(),
                                 naive.arrays[a]->data(), rounding, floor);
    if (!agreed.within) {
      if (moved.empty()) {
        moved = sensitivity(built, truth, rounding.arithmetic);
        steep = slopes(built);
      }
      agreed.bound += sensitive_of(p) * moved[a];
      if (a > 1) {  // after output and lse
        const double grown =
            largest_quotient(p) * std::max(1.0, a - 2 < steep.size() ? steep[a - 2] : 1.0);
        agreed.bound +=
            (kUlps * rounding.arithmetic + kStorageUlps * rounding.storage) * floor * (grown - 1);
      }
      agreed.within = agreed.error <= agreed.bound;
      agreed.multiple = agreed.error / std::max(agreed.error / agreed.multiple, moved[a]);
    }
    all.push_back(agreed);
  }
  const auto expected = truth.forward.empty_rows;
  all.push_back({.array = "empty_rows",
                 .error = std::fabs(static_cast<double>(expected - empty_rows)),
                 .within = expected == empty_rows});
  return all;
}

std::vector<Agreement> judge(cases::Built& built, const std::vector<NamedView>& got,
                             int64_t empty_rows) {
  return built.problem.query.dtype == DType::kFloat64
             ? judge<long double, double>(built, got, empty_rows)
             : judge<double, float>(built, got, empty_rows);
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

std::vector<Agreement> compare(cases::Built& built, const engine::Parallel& parallel) {
  const int64_t empty_rows = forward_empty_rows(built, built.result, parallel);
  engine::backward(built.problem, built.result, built.gradients, parallel);
  std::vector<NamedView> got = {{"output", built.result.output}, {"lse", built.result.lse}};
  for (const NamedView& gradient : arrays_of(built.gradients)) {
    got.push_back({"d " + gradient.name, gradient.view});
  }
  return judge(built, got, empty_rows);
}

std::vector<Agreement> compare_forward(cases::Built& built, const engine::Parallel& parallel) {
  engine::Result result = built.result;
  result.statistics = {};
  const int64_t empty_rows = forward_empty_rows(built, result, parallel);
  return judge(built, {{"output", result.output}, {"lse", result.lse}}, empty_rows);
}

namespace {

void expect_within(const std::vector<Agreement>& all) {
  for (const Agreement& a : all) {
    EXPECT_TRUE(a.within) << a.array << " off by " << a.error << ", allowed " << a.bound
                          << " (naive " << a.naive << ")";
  }
}

}  // namespace

void expect_agreement(cases::Built& built, const engine::Parallel& parallel) {
  expect_within(compare(built, parallel));
}

void expect_forward_agreement(const cases::Case& c) {
  SCOPED_TRACE(c.name());
  cases::Built built = cases::build(c);
  expect_within(compare_forward(built, threads(2)));
}

void expect_agreement(const cases::Case& c) {
  SCOPED_TRACE(c.name());
  cases::Built built = cases::build(c);
  expect_agreement(built, threads(2));
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
