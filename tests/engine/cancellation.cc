#include "tests/engine/cancellation.h"

#include <algorithm>
#include <cmath>

#include "engine/reference/normaliser.h"
#include "engine/reference/reference.h"
#include "tests/engine/arrays.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Storage;
using engine::DType;
using engine::View;

// dE_j = (dO.v_j - dO.o) / sum E with o = sum E_j v_j / sum E. The two products nearly cancel where a
// row has few keys (they do exactly where it has one), so that what remains of them is sum |E| / |sum E|
// units of dO.v, and that is divided by a sum as small as one likes: at the edge of a compact kernel, or
// where a bias is as large as the kernel and of the other sign.
double quotient_of_a_ratio(const engine::Problem& p) {
  engine::Problem scores = p;
  scores.normaliser = engine::Unnormalised{};
  double most = 1;
  for (const auto& row : reference::forward<double>(scores).rows) {
    double sum = 0, size = 0;
    for (const double weight : row.weights) sum += weight, size += std::fabs(weight);
    const double quotient = size / (sum * sum);
    if (std::isfinite(quotient)) most = std::max(most, quotient);
  }
  return most;
}

// dq = dE (k / |k| - cos q / |q|) / |q|: the two directions are nearly the same where the width is 1, and
// where query and key point the same way.
double quotient_of_rows(const View& rows) {
  const int64_t width = rows.size[static_cast<size_t>(rows.rank - 1)];
  double most = 1, square = 0;
  int64_t n = 0;
  Storage::each(rows, [&](int64_t at) {
    const double x = Storage::get(rows, at);
    square += x * x;
    if (++n % width != 0) return;
    if (square > 0) most = std::max(most, 1 / std::sqrt(square));
    square = 0;
  });
  return most;
}

// So far that the change of a score is no rounding, and no farther.
double step_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 0x1p-26;
    case DType::kFloat32:
      return 0x1p-12;
    default:
      return 0x1p-4;
  }
}

// A soft cap's derivative is 1 - tanh^2, which cancels where the cap is reached: what is left of a unit
// there is multiplied by the slope of the score before the cap, however flat it is after it.
engine::Problem without_caps(const engine::Problem& p) {
  engine::Problem steeper = p;
  std::erase_if(steeper.score.modifiers, [](const engine::Modifier& modifier) {
    return std::holds_alternative<engine::SoftCap>(modifier);
  });
  return steeper;
}

// The largest change of a score of `problem`, whose arrays are those of `built`, over that of an
// element, when `view` is moved.
double slope(cases::Built& built, const engine::Problem& problem, const View& view,
             const std::vector<reference::WeightRow<long double>>& before) {
  const Numbers kept = numbers(view);
  const double step = step_of(view.dtype);
  double moved = 0, rise = 0;
  size_t n = 0;
  Storage::each(view, [&](int64_t at) {
    const double x = kept[n++];
    Storage::set(view, at, x + built.storage.uniform(-step, step));
    const double by = std::fabs(Storage::get(view, at) - x);
    if (std::isfinite(by)) moved = std::max(moved, by);
  });
  const auto after = reference::forward<long double>(problem).rows;
  for (size_t r = 0; r < before.size() && r < after.size(); ++r)
    for (size_t j = 0; j < before[r].scores.size() && j < after[r].scores.size(); ++j) {
      const auto change = static_cast<double>(after[r].scores[j] - before[r].scores[j]);
      if (std::isfinite(change)) rise = std::max(rise, std::fabs(change));
    }
  assign(view, kept);
  return moved > 0 ? rise / moved : 0;
}

}  // namespace

double largest_quotient(const engine::Problem& p) {
  double most = 1;
  if (std::holds_alternative<engine::KernelRatio>(p.normaliser) &&
      reference::face_of(p) == reference::Face::kValue)
    most = quotient_of_a_ratio(p);
  if (std::holds_alternative<engine::Cosine>(p.score.kind))
    most *= std::max(quotient_of_rows(p.query), quotient_of_rows(p.key));
  return most;
}

std::vector<double> slopes(cases::Built& built) {
  constexpr int kMoves = 3;
  const engine::Problem problem = without_caps(built.problem);
  const auto before = reference::forward<long double>(problem).rows;
  std::vector<double> all;
  for (const NamedView& array : arrays_of(built.problem)) {
    double steepest = 0;
    for (int move = 0; move < kMoves; ++move)
      steepest = std::max(steepest, slope(built, problem, array.view, before));
    all.push_back(steepest);
  }
  return all;
}

}  // namespace fovea
