// All gradients of threshold normalisers by the pairs that have weight, where those are few: scores
// of whole rows again, then nothing but the support is touched.
#include <cmath>
#include <limits>

#include "engine/tiles/backward_rows.h"
#include "engine/paths/support_loops.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

// How many weights a row has, from what forward saved of it; all keys where the normaliser does not
// say.
template <class T>
size_t support_size(const Normaliser& normaliser, const T* statistics, size_t keys) {
  if (std::holds_alternative<Sparsemax>(normaliser)) return static_cast<size_t>(statistics[2]);
  if (std::holds_alternative<Entmax>(normaliser)) return static_cast<size_t>(statistics[3]);
  if (const auto* top = std::get_if<TopK>(&normaliser))
    return std::min(keys, static_cast<size_t>(top->k));
  return keys;
}

// A score that all with weight exceed, and few others.
template <class T>
T below_support(const Normaliser& normaliser, size_t head, const T* statistics) {
  if (std::holds_alternative<TopK>(normaliser))
    return std::nextafter(statistics[2], -std::numeric_limits<T>::infinity());
  const T most = statistics[0];
  T tau = statistics[1];
  if (const auto* entmax = std::get_if<Entmax>(&normaliser)) {
    const View& each = entmax->alpha_tensor;
    const T alpha = each ? read<T>(each, each.size[0] == 1 ? 0 : static_cast<int64_t>(head))
                         : static_cast<T>(entmax->alpha);
    tau /= alpha - 1;
  }
  const T rounding = 4 * std::numeric_limits<T>::epsilon();
  return most + tau - rounding * (std::fabs(most) + std::fabs(tau));
}

template <class T>
class Supports : RowStrips<T> {
  using Strips = RowStrips<T>;
  using Strips::run_;
  using Strips::s_;

 public:
  Supports(BackwardState<T>& state, size_t rows)
      : Strips(state, rows), scale_(score_scale(state.pass.problem, state.geometry)) {
    Layout sizes;
    lay(sizes);
    memory_ = Scratch(sizes.size());
    Layout layout(memory_.data());
    lay(layout);
  }

  // Of a key head: one worker adds to its keys and values.
  void gradients(size_t batch, size_t key_head) {
    const Geometry& g = s_.geometry;
    const size_t keys = g.key_count[batch], width = g.key_width, ev = g.value_width;
    std::fill_n(dk_, keys * width, T(0));
    std::fill_n(dv_, keys * ev, T(0));
    for (size_t head = key_head * g.group; head < (key_head + 1) * g.group; ++head) {
      for (size_t b = 0; b < s_.block_count; ++b) {
        Strips::each_strip(batch, head, b, [&](Tile<T>& tile, bool finite) {
          Strips::score_rows(tile, finite, -std::numeric_limits<T>::infinity(),
                             [](const Tile<T>&, size_t) {});
          for (size_t r = 0; r < tile.nq; ++r) add_row(tile, r, b);
        });
        s_.at(batch, head, b).touched = true;
      }
    }
    const auto store = [&](const View& view, const T* rows, size_t row_width) {
      if (view)
        store_rows(rows, row_width, keys, row_width, view.dtype, g.key_rows(view, batch, key_head),
                   0);
    };
    store(s_.gradients.key, dk_, width);
    store(s_.gradients.value, dv_, ev);
  }

 private:
  static T score_scale(const Problem& problem, const Geometry& g) {
    const auto& dot = std::get<Dot>(problem.score.kind);
    return static_cast<T>(
        dot.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<size_t>(1, g.query_width)))));
  }

  void lay(Layout& layout) {
    const size_t all = s_.geometry.max_keys, padded = tile_stride(all);
    Strips::lay(layout);
    dk_ = layout.take<T>(all * s_.geometry.key_width);
    dv_ = layout.take<T>(all * s_.geometry.value_width);
    weights_ = layout.take<T>(padded);
    gradients_ = layout.take<T>(padded);
    keys_ = layout.take<int32_t>(padded);
  }

  // One row's scores become its support, closed up: to the normaliser it is a short row.
  void add_row(const Tile<T>& tile, size_t r, size_t b) {
    const auto& normaliser = *s_.pass.stages.normaliser;
    const Normaliser& choice = s_.pass.problem.normaliser;
    const auto& loops = row_loops<T>();
    const auto& support = support_loops<T>();
    T stats[kStatistics];
    std::copy_n(tile.stats + r * kStatistics, kStatistics, stats);
    const size_t n = support.above(tile.s + r * tile.s_stride, tile.nk,
                                   below_support(choice, tile.head, stats), weights_, keys_);
    if (std::holds_alternative<TopK>(choice)) {  // knows the last of equal scores by its position
      const auto last = static_cast<int32_t>(stats[3] - static_cast<T>(tile.k0));
      stats[3] = static_cast<T>(tile.k0) +
                 static_cast<T>(std::upper_bound(keys_, keys_ + n, last) - keys_ - 1);
    }
    for (size_t i = 0; i < n; ++i) keys_[i] += static_cast<int32_t>(tile.k0);
    Tile<T> row = tile;
    row.nq = 1;
    row.nk = n;
    row.s = weights_;
    row.ds = gradients_;
    row.stats = stats;
    row.row_term = tile.row_term + r;
    if (tile.d_lse) row.d_lse = tile.d_lse + r;
    std::fill(weights_ + n, weights_ + row.padded_keys(), -std::numeric_limits<T>::infinity());
    std::fill(gradients_ + n, gradients_ + row.padded_keys(), T(0));
    normaliser.weights(row);
    const T* g = tile.g + r * tile.g_stride;
    loops.gather_dots(g, keys_, n, run_.v, run_.v_stride, tile.value_width, gradients_);
    if (normaliser.row_term() == RowTerm::kRows) {
      const size_t size = normaliser.partial_size();
      normaliser.row_terms(row, s_.row_terms.data() + s_.row(tile.batch, tile.head, tile.q0 + r));
      if (size)
        normaliser.backward_parameters(
            row, s_.normaliser_partials.data() +
                     (s_.index(tile.batch, tile.head) * s_.block_count + b) * size);
    }
    if (s_.wants_value) support.scatter(weights_, keys_, n, g, tile.value_width, dv_);
    normaliser.backward(row);
    for (size_t i = 0; i < n; ++i) gradients_[i] *= scale_;
    const size_t width = s_.geometry.key_width;
    if (s_.wants_key) support.scatter(gradients_, keys_, n, tile.q + r * tile.q_stride, width, dk_);
    if (tile.dq)
      loops.gather(gradients_, keys_, n, run_.k, run_.k_stride, width, Into::kStore,
                   tile.dq + r * tile.dq_stride);
  }

  const T scale_;
  Scratch memory_;
  T *dk_, *dv_;              // of the key head
  T *weights_, *gradients_;  // of a row's pairs with weight
  int32_t* keys_;
};

// Enough key heads that one worker for each is no loss: the choice must not depend on how many
// workers there are.
constexpr size_t kEnoughHeads = 4;

template <class T>
bool few_weights(const BackwardState<T>& s) {
  const Geometry& g = s.geometry;
  const Problem& p = s.pass.problem;
  if (!std::holds_alternative<Dot>(p.score.kind) || !p.score.modifiers.empty() || s.pass.dropout)
    return false;
  if (g.batches * g.key_heads < kEnoughHeads) return false;
  size_t weights = 0, pairs = 0;
  for (size_t batch = 0; batch < g.batches; ++batch) {
    for (size_t head = 0; head < g.heads; ++head) {
      const size_t first = s.row(batch, head, 0), keys = g.key_limit[batch];
      for (size_t i = first; i < first + g.query_count[batch]; ++i) {
        weights += support_size(p.normaliser, s.statistics.data() + i * kStatistics, keys);
      }
      pairs += g.query_count[batch] * keys;
    }
  }
  return weights * kFewOneIn < pairs;
}

}  // namespace

template <class T>
bool run_supports(BackwardState<T>& state, const Parallel& parallel) {
  if (!few_weights(state)) return false;
  const Geometry& g = state.geometry;
  const size_t tickets = g.batches * g.key_heads;
  auto workers = strip_workers<Supports<T>>(state, parallel, tickets, 1);
  run_tickets(parallel, tickets, [&](size_t worker, size_t ticket) {
    workers[worker].gradients(ticket / g.key_heads, ticket % g.key_heads);
  });
  return true;
}
template bool run_supports<float>(BackwardState<float>&, const Parallel&);
template bool run_supports<double>(BackwardState<double>&, const Parallel&);

}  // namespace fovea::engine
