// A normaliser alone, streaming or of whole rows: its weights against a plain function of one row, its gradients
// against central differences of it, with masked places, rows that see nothing and rows that must
// be refused.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "engine/registry.h"
#include "engine/call/view.h"
#include "tests/engine/bounds.h"
#include "tests/engine/targets.h"

namespace fovea::engine::testing {

inline constexpr double kMasked = -std::numeric_limits<double>::infinity();

struct Solved {
  std::vector<double> weights, lse, carry,
      statistics;  // [rows][n], [rows], [rows], [rows][kStatistics]
};

template <class T>
class NormaliserRig {
 public:
  NormaliserRig(const Normaliser& choice, NormaliserPointer<T> (*make)(const StageContext&),
                const Normaliser* gradient = nullptr) {
    geometry_.heads = 2;
    geometry_.batches = 1;
    geometry_.storage = dtype_of<T>();
    problem_.normaliser = choice;
    problem_.seed = 5;
    if (gradient) wanted_.normaliser = *gradient;
    stage_ = make({.problem = problem_,
                   .geometry = geometry_,
                   .gradients = gradient ? &wanted_ : nullptr,
                   .face = Face::kLog});
  }
  const NormaliserStage<T>& stage() const { return *stage_; }

  // rows x n scores, as a strip, or a few columns at a time where the normaliser streams;
  // `compressed` asks for the support.
  Solved solve(const std::vector<double>& scores, size_t rows, size_t n,
               bool compressed = false) const {
    if (stage_->kind() == Kind::kStreaming) return stream(scores, rows, n, compressed ? 48 : 16);
    const size_t stride = stride_of(n);
    std::vector<T> s = padded(scores, rows, n), carry(rows + 16), stats(rows * kStatistics),
                   lse(rows);
    std::vector<int32_t> support(rows * stride, -1), count(rows, -1);
    Tile<T> tile = base(rows, n);
    tile.s = s.data();
    tile.rows.carry = carry.data();
    tile.rows.stats = stats.data();
    if (compressed) tile.support = support.data(), tile.support_count = count.data();
    stage_->solve(tile, lse.data());
    Solved out;
    for (size_t r = 0; r < rows; ++r) {
      std::vector<double> row(n, 0);
      if (compressed) {
        for (int32_t i = 0; i < count[r]; ++i) {
          if (i > 0) {
            EXPECT_LT(support[r * stride + i - 1], support[r * stride + i]);
          }
          row[support[r * stride + i]] = s[r * stride + i];
        }
      } else {
        for (size_t c = 0; c < n; ++c) row[c] = s[r * stride + c];
      }
      out.weights.insert(out.weights.end(), row.begin(), row.end());
      out.lse.push_back(lse[r]);
      out.carry.push_back(carry[r]);
    }
    out.statistics.assign(stats.begin(), stats.end());
    return out;
  }

  // Weights made again from the statistics, in tiles of `columns` columns.
  std::vector<double> weights_again(const std::vector<double>& scores, size_t rows, size_t n,
                                    const Solved& solved, size_t columns) const {
    std::vector<double> out(rows * n);
    const std::vector<T> stats(solved.statistics.begin(), solved.statistics.end());
    for (size_t k = 0; k < n; k += columns) {
      const size_t nk = std::min(columns, n - k);
      std::vector<T> s = padded(part_of(scores, rows, n, k, nk), rows, nk);
      Tile<T> tile = base(rows, nk);
      tile.k0 = kFirstKey + k;
      tile.s = s.data();
      tile.stats = stats.data();
      stage_->weights(tile);
      for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < nk; ++c) out[r * n + k + c] = s[r * stride_of(nk) + c];
    }
    return out;
  }

  // Gradient of the scores from that of the weights and of lse; adds to *d_parameter.
  std::vector<double> backward(const std::vector<double>& scores, size_t rows, size_t n,
                               const Solved& solved, const std::vector<double>& d_weights,
                               const std::vector<double>& d_lse, T* d_parameter) const {
    const size_t stride = stride_of(n);
    std::vector<T> kept = padded(scores, rows, n), a(rows * stride, T(0)), g(rows * stride, T(0)),
                   terms(rows, T(0));
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < n; ++c) {
        a[r * stride + c] = static_cast<T>(solved.weights[r * n + c]);
        g[r * stride + c] = static_cast<T>(d_weights[r * n + c]);
        terms[r] += a[r * stride + c] * g[r * stride + c];  // what RowTerm::kOutput means
      }
    const std::vector<T> stats(solved.statistics.begin(), solved.statistics.end()),
        lse(d_lse.begin(), d_lse.end());
    Tile<T> tile = base(rows, n);
    tile.s = a.data();
    tile.ds = g.data();
    tile.scores = kept.data();
    tile.stats = stats.data();
    tile.d_lse = lse.data();
    if (stage_->row_term() == RowTerm::kRows) stage_->row_terms(tile, terms.data());
    tile.row_term = terms.data();
    if (d_parameter) stage_->backward_parameters(tile, d_parameter);
    stage_->backward(tile);
    std::vector<double> out;
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < n; ++c) {
        // The driver clears what is masked; stages that see -infinity there must have done so.
        const bool cleared = stage_->face() == Face::kValue && scores[r * n + c] == kMasked;
        out.push_back(cleared ? 0 : g[r * stride + c]);
      }
    return out;
  }

  static constexpr size_t kFirstKey = 32;  // where the strip starts

 private:
  // As the driver does: tiles of `columns` columns, what earlier ones gave multiplied by the carry.
  Solved stream(const std::vector<double>& scores, size_t rows, size_t n, size_t columns) const {
    std::vector<T> maximum(rows + 16), sum(rows + 16), carry(rows + 16), stats(rows * kStatistics),
        lse(rows);
    Solved out;
    out.weights.resize(rows * n);
    Tile<T> tile = base(rows, n);
    tile.rows = {maximum.data(), sum.data(), carry.data(), stats.data()};
    const auto carried = [&](size_t r, size_t end) {
      for (size_t c = 0; c < end; ++c) out.weights[r * n + c] *= carry[r];
    };
    stage_->begin(tile);
    for (size_t k = 0; k < n; k += columns) {
      const size_t nk = std::min(columns, n - k);
      std::vector<T> s = padded(part_of(scores, rows, n, k, nk), rows, nk);
      tile.k0 = kFirstKey + k;
      tile.nk = nk;
      tile.s = s.data();
      tile.s_stride = stride_of(nk);
      stage_->weigh(tile);
      for (size_t r = 0; r < rows; ++r) {
        carried(r, k);
        for (size_t c = 0; c < nk; ++c) out.weights[r * n + k + c] = s[r * stride_of(nk) + c];
      }
    }
    stage_->finish(tile, lse.data());
    for (size_t r = 0; r < rows; ++r) {
      carried(r, n);
      bool seen = false;
      for (size_t c = 0; c < n; ++c) seen = seen || scores[r * n + c] != kMasked;
      out.lse.push_back(lse[r]);
      // What the driver makes of it: refused, seen or empty.
      out.carry.push_back(std::isnan(carry[r]) ? carry[r] : seen && carry[r] != 0 ? 1 : 0);
    }
    out.statistics.assign(stats.begin(), stats.end());
    return out;
  }
  static std::vector<double> part_of(const std::vector<double>& scores, size_t rows, size_t n,
                                     size_t k, size_t nk) {
    std::vector<double> part;
    for (size_t r = 0; r < rows; ++r)
      part.insert(part.end(), scores.begin() + r * n + k, scores.begin() + r * n + k + nk);
    return part;
  }
  static size_t stride_of(size_t n) {
    return (n + kRowPadding - 1) / kRowPadding * kRowPadding + kRowPadding;
  }
  // Masked places and the padding as the driver leaves them.
  std::vector<T> padded(const std::vector<double>& scores, size_t rows, size_t n) const {
    const T masked = stage_->face() == Face::kValue ? T(0) : -std::numeric_limits<T>::infinity();
    std::vector<T> s(rows * stride_of(n), masked);
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < n; ++c) {
        const double x = scores[r * n + c];
        s[r * stride_of(n) + c] = x == kMasked ? masked : static_cast<T>(x);
      }
    return s;
  }
  static Tile<T> base(size_t rows, size_t n) {
    Tile<T> tile;
    tile.head = 1;
    tile.q0 = 3;
    tile.nq = rows;
    tile.k0 = kFirstKey;
    tile.nk = n;
    tile.s_stride = stride_of(n);
    return tile;
  }

  Geometry geometry_;
  Problem problem_;
  Gradients wanted_;
  NormaliserPointer<T> stage_;
};

// Weights of one row (masked places left out), and its lse if `lse` is not null.
using RowFunction = std::function<std::vector<double>(const std::vector<double>& row, double* lse)>;

inline std::vector<double> random_rows(size_t rows, size_t n, double spread, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, spread);
  std::vector<double> s(rows * n);
  for (size_t i = 0; i < s.size(); ++i)
    s[i] = (i * 7 + seed) % 11 == 0 ? kMasked : static_cast<float>(normal(random));
  return s;
}

// Weights of a row with masked places, by a function of what is not masked.
inline std::vector<double> masked_row(const RowFunction& f, const double* row, size_t n,
                                      double* lse) {
  std::vector<double> seen, out(n, 0);
  for (size_t c = 0; c < n; ++c)
    if (row[c] != kMasked) seen.push_back(row[c]);
  if (seen.empty()) return out;
  const std::vector<double> a = f(seen, lse);
  size_t next = 0;
  for (size_t c = 0; c < n; ++c)
    if (row[c] != kMasked) out[c] = a[next++];
  return out;
}

// A ratio divides by the sum of its scores: they are positive for a normaliser that takes values.
template <class T>
std::vector<double> scores_for(const NormaliserRig<T>& rig, size_t rows, size_t n, double spread,
                               unsigned seed) {
  std::vector<double> s = random_rows(rows, n, spread, seed);
  if (rig.stage().face() == Face::kValue)
    for (double& x : s) x = x == kMasked ? x : std::fabs(x);
  return s;
}

// How far a row's weights are from the truth, `row`, where all that a normaliser computes is rounded.
using WeightBound = std::function<double(std::span<const double> row)>;

// For one that adds weights up and divides by the sum: weights are 1 at most.
template <class T>
double rounded_weights(std::span<const double>) {
  return bounds::rounded(1, bounds::kUlpOf<T>);
}

template <class T>
void check_normaliser(const NormaliserRig<T>& rig, const RowFunction& f, size_t n, double spread,
                      bool has_lse = false, const WeightBound& bound = rounded_weights<T>) {
  const size_t rows = 5;
  std::vector<double> scores = scores_for(rig, rows, n, spread, static_cast<unsigned>(n));
  for (size_t c = 0; c < n; ++c) scores[2 * n + c] = kMasked;  // a row that sees nothing
  const Solved solved = rig.solve(scores, rows, n), compressed = rig.solve(scores, rows, n, true);
  std::vector<double> want, lse(rows, 0), bounds_of_rows;
  for (size_t r = 0; r < rows; ++r) {
    const std::vector<double> row = masked_row(f, scores.data() + r * n, n, &lse[r]);
    bounds_of_rows.push_back(bound(row));
    want.insert(want.end(), row.begin(), row.end());
  }
  if (rig.stage().kind() == Kind::kThreshold) {
    ASSERT_EQ(solved.weights, compressed.weights);
  } else {  // tiles of another width round otherwise
    for (size_t i = 0; i < rows * n; ++i)
      FOVEA_ASSERT_CLOSE(solved.weights[i], compressed.weights[i], bounds_of_rows[i / n]);
  }
  for (size_t r = 0; r < rows; ++r) {
    bool any = false;
    for (size_t c = 0; c < n; ++c) {
      any = any || scores[r * n + c] != kMasked;
      FOVEA_ASSERT_CLOSE(solved.weights[r * n + c], want[r * n + c], bounds_of_rows[r])
          << "row " << r << ", column " << c << " of " << n;
    }
    ASSERT_EQ(solved.carry[r], any ? 1 : 0);
    if (any && has_lse) {
      FOVEA_ASSERT_CLOSE(solved.lse[r], lse[r],
                         bounds::rounded(1 + std::fabs(lse[r]), bounds::kUlpOf<T>));
    }
  }
  for (size_t columns : {size_t{16}, size_t{48}, n}) {
    const std::vector<double> again =
        rig.weights_again(scores, rows, n, solved, std::max<size_t>(1, columns));
    for (size_t i = 0; i < again.size(); ++i)
      FOVEA_ASSERT_CLOSE(again[i], solved.weights[i], bounds_of_rows[i / n]);
  }
}

// Gradients in double against central differences of loss = sum d_weights weights + sum d_lse lse.
inline void check_gradient(const NormaliserRig<double>& rig, const RowFunction& f, size_t n,
                           bool has_lse, bool choice_is_fixed) {
  const size_t rows = 4;
  std::vector<double> scores = scores_for(rig, rows, n, 1, 91);
  for (size_t c = 0; c < n; ++c) scores[1 * n + c] = kMasked;
  const Solved solved = rig.solve(scores, rows, n);
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> d_weights(rows * n), d_lse(rows, 0);
  for (double& x : d_weights) x = normal(random);
  for (double& x : d_lse) x = has_lse ? normal(random) : 0;
  const std::vector<double> got = rig.backward(scores, rows, n, solved, d_weights, d_lse, nullptr);
  std::vector<double> size(rows, 0);  // of each row's loss, its terms added up
  const auto loss = [&](size_t r) {
    double lse = 0, sum = 0;
    const std::vector<double> a = masked_row(f, scores.data() + r * n, n, &lse);
    for (size_t c = 0; c < n && !choice_is_fixed; ++c) sum += d_weights[r * n + c] * a[c];
    size[r] = std::fabs(d_lse[r] * lse);
    for (size_t c = 0; c < n; ++c) size[r] += std::fabs(d_weights[r * n + c]);
    return sum + d_lse[r] * lse;
  };
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < n; ++c) {
      double& x = scores[r * n + c];
      if (x == kMasked) {
        ASSERT_EQ(got[r * n + c], 0);
        continue;
      }
      const double keep = x, step = 1e-6;
      x = keep + step;
      const double above = loss(r);
      x = keep - step;
      const double below = loss(r);
      x = keep;
      FOVEA_ASSERT_CLOSE(got[r * n + c], (above - below) / (2 * step),
                         bounds::difference(step, size[r]))
          << "row " << r << ", column " << c << " of " << n;
    }
}

// A row with NaN or +infinity is refused, its neighbours are not.
template <class T>
void check_refusals(const NormaliserRig<T>& rig) {
  const size_t n = 37;
  for (double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (size_t at : {size_t{0}, size_t{17}, n - 1}) {
      std::vector<double> scores = scores_for(rig, 3, n, 1, 4);
      scores[n + at] = bad;
      const Solved solved = rig.solve(scores, 3, n);
      EXPECT_EQ(solved.carry[0], 1);
      EXPECT_TRUE(std::isnan(solved.carry[1])) << bad << " at " << at;
      EXPECT_EQ(solved.carry[2], 1);
    }
  }
}

}  // namespace fovea::engine::testing
