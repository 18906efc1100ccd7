// A score stage alone: its scores against an equation written as a plain function of doubles, its
// gradients against central differences of that equation, with pairs left out and NaN in their
// operands. A result may be as far from the truth as it moves when every input moves by a few units
// in the last place; that is measured on the stage in double.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "engine/call/problem.h"
#include "engine/registry.h"
#include "engine/call/view.h"
#include "tests/engine/bounds.h"
#include "tests/engine/targets.h"

namespace fovea::engine::testing {

struct ScoreCase {
  size_t nq = 5, nk = 7, query_width = 3, key_width = 3;
  size_t q0 = 2, k0 = 0;  // where the tile lies
  size_t heads = 2, head = 1, batches = 2, batch = 1;
  Face face = Face::kLog;
  double spread = 1;                              // standard deviation of query and key
  std::vector<std::vector<int64_t>> shapes = {};  // of the arrays the score owns
  std::vector<double> low = {}, high = {};        // their ranges, [-1, 1] unless given
  // The choice, from views of the arrays (or of their gradients).
  std::function<Score(const std::vector<View>&)> build = {};
  // Score of query row q (at position i) and key row k (at j), arrays flat.
  std::function<double(const std::vector<std::vector<double>>&, const double* q, const double* k,
                       size_t i, size_t j)>
      equation = {};
};

// What a stage is given besides the choice; arrays are those the score owns.
struct ScoreInputs {
  std::vector<double> q, k;
  std::vector<std::vector<double>> arrays;
  std::vector<double> ds;
};

inline std::vector<double> random_values(std::mt19937& random, size_t n, double spread) {
  std::normal_distribution<double> normal(0, spread);
  std::vector<double> x(n);
  for (double& value : x) value = static_cast<float>(normal(random));
  return x;
}

template <class T>
View view_of(std::vector<T>& data, const std::vector<int64_t>& shape) {
  View view;
  view.data = data.data();
  view.dtype = dtype_of<T>();
  view.rank = static_cast<int>(shape.size());
  int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    view.size[d] = shape[d];
    view.stride[d] = stride;
    stride *= shape[d];
  }
  return view;
}

struct ScoreRun {
  std::vector<double> scores, dq, dk;
  std::vector<std::vector<double>> d_arrays;

  std::vector<std::vector<double>*> all() {
    std::vector<std::vector<double>*> arrays = {&scores, &dq, &dk};
    for (auto& array : d_arrays) arrays.push_back(&array);
    return arrays;
  }
};

// Pairs with keep = 0 have a gradient of zero; `poison` puts NaN into query row 1 and key row 1,
// which keep must leave out.
template <class T>
ScoreRun run_score(const ScoreCase& c, ScorePointer<T> (*make)(const StageContext&),
                   const ScoreInputs& inputs, bool poison) {
  const auto& [q, k, arrays, ds] = inputs;
  Geometry geometry;
  geometry.storage = dtype_of<T>();
  geometry.batches = c.batches;
  geometry.heads = geometry.key_heads = c.heads;
  geometry.query_width = c.query_width;
  geometry.key_width = c.key_width;
  geometry.max_queries = c.q0 + c.nq;
  geometry.max_keys = c.k0 + c.nk;
  std::vector<std::vector<T>> values, gradients;
  for (const auto& array : arrays) {
    values.emplace_back(array.begin(), array.end());
    gradients.emplace_back(array.size(), T(0));
  }
  std::vector<View> value_views, gradient_views;
  for (size_t a = 0; a < arrays.size(); ++a) {
    value_views.push_back(view_of(values[a], c.shapes[a]));
    gradient_views.push_back(view_of(gradients[a], c.shapes[a]));
  }
  Problem problem;
  problem.score = c.build(value_views);
  Gradients wanted;
  wanted.score = c.build(gradient_views);
  const auto stage =
      make({.problem = problem, .geometry = geometry, .gradients = &wanted, .face = c.face});

  const T nan = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> q_rows(q.begin(), q.end()), k_rows(k.begin(), k.end());
  if (poison) {
    std::fill_n(q_rows.begin() + c.query_width, c.query_width, nan);
    std::fill_n(k_rows.begin() + c.key_width, c.key_width, nan);
  }
  const auto prepare = [&](std::vector<T>& rows, size_t n, size_t width, size_t prepared,
                           bool query) {
    if (prepared == 0) return rows;
    std::vector<T> out(n * prepared + 16, T(0));
    if (query)
      stage->prepare_query(c.batch, c.head, c.q0, n, rows.data(), width, out.data());
    else
      stage->prepare_key(c.batch, c.head, c.k0, n, rows.data(), width, out.data());
    return out;
  };
  std::vector<T> pq = prepare(q_rows, c.nq, c.query_width, stage->prepared_query_width(), true);
  std::vector<T> pk = prepare(k_rows, c.nk, c.key_width, stage->prepared_key_width(), false);
  const size_t q_width =
      stage->prepared_query_width() ? stage->prepared_query_width() : c.query_width;
  const size_t k_width = stage->prepared_key_width() ? stage->prepared_key_width() : c.key_width;
  pq.resize(pq.size() + 64), pk.resize(pk.size() + 64);  // rows may be read in whole vectors

  std::vector<T> panel((c.nk + kPanelKeys - 1) / kPanelKeys * stage->panel_size() + 1);
  for (size_t j = 0; j < c.nk && stage->panel_size(); j += kPanelKeys) {
    stage->pack_keys(pk.data() + j * k_width, k_width, std::min(kPanelKeys, c.nk - j),
                     panel.data() + j / kPanelKeys * stage->panel_size());
  }
  const size_t stride = (c.nk + kRowPadding - 1) / kRowPadding * kRowPadding + kRowPadding;
  std::vector<T> s(c.nq * stride, nan), gradient(c.nq * stride, nan), raw;
  Tile<T> tile;
  tile.batch = c.batch, tile.head = c.head;
  tile.q0 = c.q0, tile.nq = c.nq, tile.k0 = c.k0, tile.nk = c.nk;
  tile.q = pq.data(), tile.q_stride = q_width;
  tile.k = pk.data(), tile.k_stride = k_width;
  if (stage->panel_size()) tile.k_panel = panel.data();
  tile.s = s.data(), tile.s_stride = stride;
  stage->score(tile);
  raw = s;

  ScoreRun run;
  for (size_t i = 0; i < c.nq; ++i)
    for (size_t j = 0; j < c.nk; ++j) run.scores.push_back(s[i * stride + j]);
  std::vector<T> dq(c.nq * q_width + 64, nan), dk(c.nk * k_width + 64, nan),
      partial(stage->partial_size() + 16, T(0));
  tile.ds = gradient.data();
  tile.raw = raw.data();
  tile.finite = !poison;
  tile.dq = dq.data(), tile.dq_stride = q_width;
  tile.dk = dk.data(), tile.dk_stride = k_width;
  T* const wanted_partial = stage->partial_size() ? partial.data() : nullptr;
  // Twice: stored, then added; the sum is halved below.
  for (int pass = 0; pass < 2; ++pass) {
    tile.first = pass == 0;
    for (size_t i = 0; i < c.nq; ++i)
      for (size_t j = 0; j < stride; ++j)
        gradient[i * stride + j] = j < c.nk ? static_cast<T>(ds[i * c.nk + j]) : T(0);
    if (stage->fused_backward()) {
      stage->backward(tile, tile.first, tile.first, wanted_partial);
    } else {
      stage->backward_query(tile);
      stage->backward_key(tile);
      if (wanted_partial) stage->backward_parameters(tile, wanted_partial);
    }
  }
  std::vector<T> dq_rows = dq, dk_rows = dk;
  dq_rows.resize(dq.size() + c.nq * c.query_width);
  dk_rows.resize(dk.size() + c.nk * c.key_width);
  if (stage->prepared_query_width()) {
    stage->unprepare_query(c.batch, c.head, c.q0, c.nq, q_rows.data(), c.query_width, dq.data(),
                           dq_rows.data(), c.query_width, wanted_partial);
  }
  if (stage->prepared_key_width()) {
    stage->unprepare_key(c.batch, c.head, c.k0, c.nk, k_rows.data(), c.key_width, dk.data(),
                         dk_rows.data(), c.key_width, wanted_partial);
  }
  if (wanted_partial) stage->store_parameters(c.batch, c.head, partial.data());
  for (size_t e = 0; e < c.nq * c.query_width; ++e) run.dq.push_back(dq_rows[e] / 2);
  for (size_t e = 0; e < c.nk * c.key_width; ++e) run.dk.push_back(dk_rows[e] / 2);
  for (auto& array : gradients) {
    for (T& x : array) x /= 2;
    run.d_arrays.emplace_back(array.begin(), array.end());
  }
  return run;
}

// What each result changes by for each unit in the last place that the inputs change by, and a unit
// of its own: the largest of some random moves of all inputs at once.
inline ScoreRun units_of(const ScoreCase& c, ScorePointer<double> (*make)(const StageContext&),
                         const ScoreInputs& inputs, bool poison) {
  constexpr double kMove = 1e-6;  // far above a unit in double, and too small for curvature
  constexpr int kMoves = 6;
  std::mt19937 random(5);
  ScoreRun still = run_score<double>(c, make, inputs, poison), units = still;
  for (std::vector<double>* array : units.all())
    for (double& x : *array) x = 0;
  for (int n = 0; n < kMoves; ++n) {
    ScoreInputs moved = inputs;
    const auto move = [&](std::vector<double>& numbers) {
      for (double& x : numbers) x *= 1 + (random() % 2 ? kMove : -kMove);
    };
    move(moved.q), move(moved.k), move(moved.ds);
    for (auto& array : moved.arrays) move(array);
    ScoreRun run = run_score<double>(c, make, moved, poison);
    for (size_t a = 0; a < run.all().size(); ++a)
      for (size_t i = 0; i < run.all()[a]->size(); ++i) {
        const double before = (*still.all()[a])[i], after = (*run.all()[a])[i];
        if (!std::isfinite(before) || !std::isfinite(after)) continue;
        double& unit = (*units.all()[a])[i];
        unit = std::max(unit, std::fabs(before) + std::fabs(after - before) / kMove);
      }
  }
  // Of gradients the largest of the array: what they are made of may be much larger than they are,
  // as in 1 - tanh(x)^2.
  for (std::vector<double>* array : units.all())
    if (array != &units.scores && !array->empty())
      std::fill(array->begin(), array->end(), *std::max_element(array->begin(), array->end()));
  return units;
}

// `make64` makes the same stage in double.
template <class T>
void check_score(const ScoreCase& c, ScorePointer<T> (*make)(const StageContext&),
                 ScorePointer<double> (*make64)(const StageContext&), bool poison) {
  constexpr double ulp = bounds::kUlpOf<T>;
  std::mt19937 random(17);
  ScoreInputs inputs;
  // No structured binding: clang 14 lets no lambda capture one.
  auto &q = inputs.q, &k = inputs.k, &ds = inputs.ds;
  auto& arrays = inputs.arrays;
  q = random_values(random, c.nq * c.query_width, c.spread);
  k = random_values(random, c.nk * c.key_width, c.spread);
  for (size_t a = 0; a < c.shapes.size(); ++a) {
    size_t n = 1;
    for (int64_t extent : c.shapes[a]) n *= static_cast<size_t>(extent);
    std::uniform_real_distribution<double> uniform(a < c.low.size() ? c.low[a] : -1,
                                                   a < c.high.size() ? c.high[a] : 1);
    arrays.emplace_back();
    for (size_t i = 0; i < n; ++i) arrays.back().push_back(static_cast<float>(uniform(random)));
  }
  const auto score = [&](size_t i, size_t j) {
    return c.equation(arrays, q.data() + i * c.query_width, k.data() + j * c.key_width, c.q0 + i,
                      c.k0 + j);
  };
  // A pair without a score (log 0) is one the normaliser leaves out.
  ds = random_values(random, c.nq * c.nk, 1);
  for (size_t i = 0; i < c.nq; ++i)
    for (size_t j = 0; j < c.nk; ++j)
      if ((i * 3 + j) % 5 == 0 || (poison && (i == 1 || j == 1)) || std::isinf(score(i, j)))
        ds[i * c.nk + j] = 0;
  const ScoreRun run = run_score(c, make, inputs, poison),
                 units = units_of(c, make64, inputs, poison);
  for (size_t i = 0; i < c.nq; ++i) {
    for (size_t j = 0; j < c.nk; ++j) {
      const double want = score(i, j), got = run.scores[i * c.nk + j];
      if (poison && (i == 1 || j == 1)) {
        const std::vector<double> row(std::max(c.query_width, c.key_width), NAN);
        const double poisoned =
            c.equation(arrays, i == 1 ? row.data() : &q[i * c.query_width],
                       j == 1 ? row.data() : &k[j * c.key_width], c.q0 + i, c.k0 + j);
        ASSERT_TRUE(!std::isnan(poisoned) || std::isnan(got)) << i << ", " << j << ": " << got;
        continue;
      }
      if (std::isinf(want)) {
        ASSERT_EQ(got, want) << i << ", " << j;
      } else {
        FOVEA_ASSERT_CLOSE(got, want, bounds::rounded(units.scores[i * c.nk + j], ulp))
            << "score " << i << ", " << j;
      }
    }
  }
  const auto loss_of = [&](size_t i, size_t j) {
    const double weight = ds[i * c.nk + j];
    return weight == 0 ? 0 : weight * score(i, j);
  };
  double size = 0;  // of the loss, its terms added up
  for (size_t i = 0; i < c.nq; ++i)
    for (size_t j = 0; j < c.nk; ++j) size += std::fabs(loss_of(i, j));
  const auto check = [&](double& x, double got, double unit, const std::function<double()>& loss,
                         const std::string& what) {
    const double step = 1e-5;
    const auto difference = [&](double by) {
      const double keep = x;
      x = keep + by;
      const double above = loss();
      x = keep - by;
      const double below = loss();
      x = keep;
      return (above - below) / (2 * by);
    };
    // What the difference leaves out is less than what half the step changes; and it divides what
    // the loss rounds by the step.
    const double want = difference(step), left_out = 2 * std::fabs(want - difference(step / 2));
    FOVEA_ASSERT_CLOSE(
        got, want,
        left_out + bounds::rounded(size, bounds::kDoubleUlp) / step + bounds::rounded(unit, ulp))
        << what;
  };
  for (size_t i = 0; i < c.nq; ++i)
    for (size_t e = 0; e < c.query_width; ++e)
      check(
          q[i * c.query_width + e], run.dq[i * c.query_width + e], units.dq[i * c.query_width + e],
          [&] {
            double sum = 0;
            for (size_t j = 0; j < c.nk; ++j) sum += loss_of(i, j);
            return sum;
          },
          "dq " + std::to_string(i) + ", " + std::to_string(e));
  for (size_t j = 0; j < c.nk; ++j)
    for (size_t e = 0; e < c.key_width; ++e)
      check(
          k[j * c.key_width + e], run.dk[j * c.key_width + e], units.dk[j * c.key_width + e],
          [&] {
            double sum = 0;
            for (size_t i = 0; i < c.nq; ++i) sum += loss_of(i, j);
            return sum;
          },
          "dk " + std::to_string(j) + ", " + std::to_string(e));
  for (size_t a = 0; a < arrays.size(); ++a)
    for (size_t e = 0; e < arrays[a].size(); ++e)
      check(
          arrays[a][e], run.d_arrays[a][e], units.d_arrays[a][e],
          [&] {
            double sum = 0;
            for (size_t i = 0; i < c.nq; ++i)
              for (size_t j = 0; j < c.nk; ++j) sum += loss_of(i, j);
            return sum;
          },
          "array " + std::to_string(a) + ", " + std::to_string(e));
}

// Double and float, one after the other.
inline void check_both(const ScoreCase& c, ScorePointer<double> (*make64)(const StageContext&),
                       ScorePointer<float> (*make32)(const StageContext&), bool poison = false) {
  check_score<double>(c, make64, make64, poison);
  check_score<float>(c, make32, make64, poison);
  if (::testing::Test::HasFatalFailure())
    FAIL() << c.nq << " x " << c.nk << ", width " << c.query_width;
}

inline std::vector<std::pair<size_t, size_t>> awkward_sizes() {
  return {{1, 1}, {2, 3}, {5, 16}, {7, 17}, {3, 67}};
}

}  // namespace fovea::engine::testing
