// Whole rows of weights and their gradients again, a strip of rows at a time: for the row terms of
// normalisers that need them, and, where few weights are not zero, for all gradients.
#include <algorithm>
#include <cmath>

#include "engine/backward.h"
#include "engine/caches.h"

namespace fovea::engine {
namespace {

// Below this share of pairs with weight, gathering their rows costs less than products of whole
// tiles: about 25 cycles a pair for each of four rows against two.
constexpr size_t kFewOneIn = 16;

template <class T>
class WholeRows {
 public:
  WholeRows(BackwardState<T>& state, size_t rows, bool by_support)
      : s_(state), rows_(rows), by_support_(by_support) {
    Layout sizes;
    lay(sizes);
    memory_ = Scratch(sizes.size());
    Layout layout(memory_.data());
    lay(layout);
  }

  // Row terms of one block of queries; keys are loaded once a head.
  void terms(size_t batch, size_t head, size_t b) {
    each_strip(batch, head, b, [](const Tile<T>&) {});
  }

  // All gradients of a key head, by the pairs that have weight: one worker adds to the head's keys
  // and values.
  void gradients(size_t batch, size_t key_head) {
    const Geometry& g = s_.geometry;
    const size_t keys = g.key_count[batch], width = g.key_width, ev = g.value_width;
    std::fill_n(dk_, keys * width, T(0));
    std::fill_n(dv_, keys * ev, T(0));
    for (size_t head = key_head * g.group; head < (key_head + 1) * g.group; ++head) {
      for (size_t b = 0; b < s_.block_count; ++b) {
        each_strip(batch, head, b, [&](Tile<T>& tile) { add_gradients(tile); });
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
  // body(tile) for each strip of a block's rows, its weights, their gradients and its row terms at
  // hand.
  template <class Body>
  void each_strip(size_t batch, size_t head, size_t b, const Body& body) {
    const Geometry& g = s_.geometry;
    if (b * kMaxQueries >= g.query_count[batch]) return;
    const size_t key_head = head / g.group;
    if (!loaded_ || batch != batch_ || key_head != key_head_) {
      s_.keys.attach(&run_, batch, key_head, 0);
      s_.keys.load(run_, batch, key_head, 0, g.key_limit[batch]);
      loaded_ = true;
      batch_ = batch;
      key_head_ = key_head;
    }
    const auto& normaliser = *s_.pass.stages.normaliser;
    const bool whole_terms = normaliser.row_term() == RowTerm::kRows;
    Tile<T> whole;
    s_.show(batch, head, b, &whole);
    const size_t size = normaliser.partial_size();
    T* partial =
        s_.normaliser_partials.data() + (s_.index(batch, head) * s_.block_count + b) * size;
    for (size_t r = 0; r < whole.nq; r += rows_) {
      Tile<T> tile = whole;
      tile.q0 += r;
      tile.nq = std::min(rows_, whole.nq - r);
      tile.q += r * tile.q_stride;
      tile.g += r * tile.g_stride;
      tile.stats += r * kStatistics;
      tile.row_term += r;
      if (tile.d_lse) tile.d_lse += r;
      if (tile.dq) tile.dq += r * tile.dq_stride;
      strip(tile, s_.at(batch, head, b).finite);
      if (whole_terms)
        normaliser.row_terms(tile, s_.row_terms.data() + s_.row(batch, head, tile.q0));
      if (whole_terms && size) normaliser.backward_parameters(tile, partial);
      body(tile);
    }
  }

  // From weights in tile.s and their gradients in tile.ds, both in columns from tile.k0 on.
  void add_gradients(Tile<T>& tile) {
    const auto& loops = row_loops<T>();
    const size_t width = s_.geometry.key_width, ev = s_.geometry.value_width;
    const T scale = score_scale(s_.pass.problem, s_.geometry);
    s_.pass.stages.normaliser->backward(tile);
    constexpr int32_t kThis = 0;
    for (size_t r = 0; r < tile.nq; ++r) {
      const T *a = tile.s + r * tile.s_stride, *ds = tile.ds + r * tile.s_stride;
      size_t n = 0;
      for (size_t c = loops.find_above(a, 0, tile.nk, T(0)); c < tile.nk;
           c = loops.find_above(a, c + 1, tile.nk, T(0))) {
        const size_t key = tile.k0 + c;
        const T d = ds[c] * scale;
        if (s_.wants_key)
          loops.gather(&d, &kThis, 1, tile.q + r * tile.q_stride, 0, width, Into::kAdd,
                       dk_ + key * width);
        if (s_.wants_value)
          loops.gather(a + c, &kThis, 1, tile.g + r * tile.g_stride, 0, ev, Into::kAdd,
                       dv_ + key * ev);
        support_d_[n] = d;
        support_[n++] = static_cast<int32_t>(key);
      }
      if (tile.dq)
        loops.gather(support_d_, support_, n, run_.k, run_.k_stride, width, Into::kStore,
                     tile.dq + r * tile.dq_stride);
    }
  }

  static T score_scale(const Problem& problem, const Geometry& g) {
    const auto& dot = std::get<Dot>(problem.score.kind);
    return static_cast<T>(
        dot.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<size_t>(1, g.query_width)))));
  }

  void lay(Layout& layout) {
    const size_t all = s_.geometry.max_keys, tile = rows_ * tile_stride(all) + kPanelKeys;
    run_ = s_.keys.lay(layout, all);
    scores_ = layout.take<T>(tile);
    gradients_ = layout.take<T>(tile);
    modifiers_.clear();
    for (const auto& m : s_.pass.stages.modifiers)
      modifiers_.push_back(layout.take<T>(kMaxQueries * m->row_scratch()));
    marks_ = layout.take<Marks>(1);
    dk_ = layout.take<T>(by_support_ ? all * s_.geometry.key_width : 0);
    dv_ = layout.take<T>(by_support_ ? all * s_.geometry.value_width : 0);
    support_d_ = layout.take<T>(by_support_ ? all : 0);
    support_ = layout.take<int32_t>(by_support_ ? all : 0);
  }

  // Leaves all weights of the tile's rows in tile.s and their gradients in tile.ds.
  void strip(Tile<T>& tile, bool finite) {
    const auto& [score, modifiers, normaliser] = s_.pass.stages;
    const auto& loops = row_loops<T>();
    for (size_t m = 0; m < modifiers.size(); ++m) modifiers[m]->begin_rows(tile, modifiers_[m]);
    Reach reach(*s_.pass.structure, tile.batch, tile.head, tile.q0, tile.nq,
                s_.geometry.key_count[tile.batch]);
    const size_t first = reach.begin(), all = reach.end() - first;
    tile.s_stride = tile_stride(all);
    std::fill_n(scores_, tile.nq * tile.s_stride, T(0));
    std::fill_n(gradients_, tile.nq * tile.s_stride, T(0));
    for (Span span; reach.next(&span);) {
      if (!describe(*s_.pass.structure, span, *marks_, &tile)) continue;
      s_.keys.show(run_, span.k0, span.nk, &tile);
      tile.finite = tile.finite && finite;
      tile.s = scores_ + (span.k0 - first);
      tile.ds = gradients_ + (span.k0 - first);
      score_tile(s_.pass, tile, modifiers_);
      normaliser->weights(tile);
      support_gradients(tile);
      for (size_t m = 0; m < modifiers.size(); ++m)
        modifiers[m]->backward_weights(tile, modifiers_[m], nullptr);
      if (s_.pass.dropout) drop(s_.pass.dropout, tile, tile.ds, tile.ds);
      loops.mask(tile, tile.ds, T(0));
    }
    tile.s = scores_;
    tile.ds = gradients_;
    tile.masked = false;
    tile.keep = nullptr;
    tile.k0 = first;
    tile.nk = all;
    loops.mask(tile, tile.s, T(0));
    loops.mask(tile, tile.ds, T(0));
  }

  // tile.ds = g . v where a weight is not zero: what lies outside the support has no part in a row
  // term. A product of the whole tile where the support is not small.
  void support_gradients(const Tile<T>& tile) const {
    const auto& loops = row_loops<T>();
    size_t left = tile.nq * tile.nk / kFewOneIn;
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* weights = tile.s + r * tile.s_stride;
      T* out = tile.ds + r * tile.s_stride;
      const size_t end = tile.row_end(r);
      for (size_t c = loops.find_above(weights, tile.row_begin(r), end, T(0)); c < end;
           c = loops.find_above(weights, c + 1, end, T(0))) {
        if (left-- == 0)
          return products<T>().score(tile, tile.g, tile.g_stride, tile.value_width, tile.v_panel,
                                     {}, tile.ds);
        const int32_t index = static_cast<int32_t>(c);
        loops.gather_dots(tile.g + r * tile.g_stride, &index, 1, tile.v, tile.v_stride,
                          tile.value_width, out + c);
      }
    }
  }

  BackwardState<T>& s_;
  const size_t rows_;
  const bool by_support_;
  Scratch memory_;
  KeyRun<T> run_;
  bool loaded_ = false;
  size_t batch_ = 0, key_head_ = 0;
  T *scores_, *gradients_;
  T *dk_, *dv_, *support_d_;  // of a key head; of a row's pairs with weight
  int32_t* support_;
  std::vector<T*> modifiers_;
  Marks* marks_;
};

template <class T>
std::vector<WholeRows<T>> make_workers(BackwardState<T>& state, const Parallel& parallel,
                                       size_t tickets, bool by_support) {
  const size_t rows =
      strip_rows(state.geometry.max_keys, 2 * sizeof(T));  // weights and their gradients
  std::vector<WholeRows<T>> workers;
  workers.reserve(slots(parallel, tickets));
  for (size_t i = 0; i < slots(parallel, tickets); ++i)
    workers.emplace_back(state, rows, by_support);
  return workers;
}

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
  auto workers = make_workers(state, parallel, tickets, true);
  run_tickets(parallel, tickets, [&](size_t worker, size_t ticket) {
    workers[worker].gradients(ticket / g.key_heads, ticket % g.key_heads);
  });
  return true;
}
template bool run_supports<float>(BackwardState<float>&, const Parallel&);
template bool run_supports<double>(BackwardState<double>&, const Parallel&);

template <class T>
void solve_row_terms(BackwardState<T>& state, const Parallel& parallel) {
  const Geometry& g = state.geometry;
  const size_t tickets = g.batches * g.heads * state.block_count;
  auto workers = make_workers(state, parallel, tickets, false);
  run_tickets(parallel, tickets, [&](size_t worker, size_t ticket) {
    const size_t head = ticket / state.block_count;
    workers[worker].terms(head / g.heads, head % g.heads, ticket % state.block_count);
  });
}
template void solve_row_terms<float>(BackwardState<float>&, const Parallel&);
template void solve_row_terms<double>(BackwardState<double>&, const Parallel&);

}  // namespace fovea::engine
