// The gradients of threshold normalisers, if few pairs have weight: scores of whole rows are computed
// again, and everything after them visits only the pairs with weight (the support).
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/call/facts.h"
#include "engine/call/view.h"
#include "engine/dispatch.h"
#include "engine/paths/support_loops.h"
#include "engine/tiles/backward_rows.h"
#include "engine/tiles/spoiled.h"

namespace fovea::engine {
namespace {

template <class T>
class Supports : RowStrips<T> {
  using Strips = RowStrips<T>;
  using Strips::run_;
  using Strips::s_;

 public:
  Supports(BackwardState<T>& state, size_t rows)
      : Strips(state, rows), scale_(score_scale(state.pass.problem, state.geometry)) {
    memory_ = lay_out([&](Layout& layout) { lay(layout); });
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
    return static_cast<T>(
        dot_scale(std::get<Dot>(problem.score.kind), static_cast<int64_t>(g.query_width)));
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
    const auto& loops = row_loops<T>();
    const auto& support = support_loops<T>();
    T stats[kStatistics];
    std::copy_n(tile.stats + r * kStatistics, kStatistics, stats);
    const size_t n = support.above(tile.s + r * tile.s_stride, tile.nk,
                                   normaliser.below_support(tile.head, stats), weights_, keys_);
    normaliser.close_up(keys_, n, tile.k0, stats);
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

// Whether few pairs have weight, as forward has counted them.
template <class T>
bool few_weights(const NormaliserStage<T>& normaliser, const Geometry& g, const View& saved) {
  ScratchArray<T> statistics(g.max_queries * kStatistics);
  size_t weights = 0, pairs = 0;
  for (size_t batch = 0; batch < g.batches; ++batch) {
    const size_t queries = g.query_count[batch], keys = g.key_limit[batch];
    for (size_t head = 0; head < g.heads; ++head) {
      load_rows(saved.dtype, g.query_rows(saved, batch, head), 0, queries, kStatistics,
                statistics.data(), kStatistics);
      if (any_spoiled(statistics.data(), queries)) return false;  // NaN at every key a row sees
      for (size_t i = 0; i < queries; ++i)
        weights += normaliser.support_size(statistics.data() + i * kStatistics, keys);
      pairs += queries * keys;
    }
  }
  return weights * kFewOneIn < pairs;
}

template <class T>
Reason too_many_weights(const Request& request) {
  const auto normaliser =
      make_normaliser<T>({request.problem, request.geometry, nullptr, face_of(request.problem)});
  if (normaliser->kind() != Kind::kThreshold) return {"the normaliser gives all keys a weight"};
  if (!request.result)
    return {"it serves where fewer than one pair in %zu has weight, which forward will count",
            kFewOneIn};
  if (!few_weights(*normaliser, request.geometry, request.result->statistics))
    return {"one pair in %zu or more has weight", kFewOneIn};
  return {};
}

Reason support_declines(const Request& request) {
  const Problem& problem = request.problem;
  const Geometry& g = request.geometry;
  if (g.graph) return {"the structure is a graph"};
  if (!std::holds_alternative<Dot>(problem.score.kind) || !problem.score.modifiers.empty())
    return {"the score is not a plain dot"};
  if (problem.dropout_p > 0) return {"weights are dropped"};
  if (g.batches * g.key_heads < kEnoughHeads)
    return {"%zu key heads, at least %zu", g.batches * g.key_heads, kEnoughHeads};
  return visit_arithmetic(g.storage, [&]<class T>() { return too_many_weights<T>(request); });
}

template <class T>
void support_backward(const Problem& problem, const Geometry& g, const Result& saved,
                      const Gradients& gradients, const Parallel& parallel) {
  BackwardState<T> state(problem, g, saved, gradients);
  prepare_blocks(state, parallel);
  const size_t tickets = g.batches * g.key_heads;
  auto workers = strip_workers<Supports<T>>(state, parallel, tickets, 1);
  run_tickets(parallel, tickets, [&](size_t worker, size_t ticket) {
    workers[worker].gradients(ticket / g.key_heads, ticket % g.key_heads);
  });
  finish_blocks(state, parallel);
}

}  // namespace

constinit const Path kSupportPath{.id = "support",
                                  .summary = "only pairs that have weight are touched",
                                  .declines = support_declines,
                                  .f32 = {.backward = support_backward<float>},
                                  .f64 = {.backward = support_backward<double>}};

}  // namespace fovea::engine
