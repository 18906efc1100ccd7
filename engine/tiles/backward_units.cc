// The main phase of backward. A unit of work is (batch, key head, kUnitKeys keys). It computes its
// tiles again, sums dK and dV over the queries in a fixed order, and adds to a block's dQ after the
// unit before it has. Units are handed out in ascending order, so a unit only waits for one that is
// running. The results have the same bits for any order of threads.
#include <algorithm>
#include <optional>

#include "engine/call/view.h"
#include "engine/tiles/backward.h"
#include "engine/tiles/spoiled.h"

namespace fovea::engine {
namespace {

// Which units may run side by side, given what modifiers' gradients share.
struct Schedule {
  bool all_batches = false, all_heads = false,
       all_keys = false;  // one ticket does all of them, in order

  template <class T>
  explicit Schedule(const Stages<T>& stages) {
    for (const auto& modifier : stages.modifiers) {
      const auto shared = modifier->sharing();
      all_batches = all_batches || shared.batches;
      all_heads = all_heads || shared.heads;
      by_turn = by_turn || shared.keys;
    }
    // Turns order the units of one block of queries. If heads or batches share a gradient too, one
    // worker computes all units.
    all_keys = by_turn && (all_batches || all_heads);
  }
  bool by_turn = false;  // modifiers' gradients are added to in the order of units
};

template <class T>
class Unit {
 public:
  Unit(BackwardState<T>& state, const Schedule& schedule) : s_(state), schedule_(schedule) {
    memory_ = lay_out([&](Layout& layout) { lay(layout); });
  }

  void run(size_t batch, size_t key_head, size_t unit) {
    const Geometry& g = s_.geometry;
    const size_t k0 = unit * kUnitKeys;
    if (k0 >= g.key_count[batch]) return;
    const size_t nk = std::min(kUnitKeys, g.key_count[batch] - k0);
    // Keys past the length are never read, only given a zero gradient.
    const size_t seen = std::min(k0 + nk, std::max(k0, g.key_limit[batch])) - k0;
    s_.keys.attach(&run_, batch, key_head, k0);
    s_.keys.load(run_, batch, key_head, k0, k0 + seen);
    begin_keys(batch, key_head, k0);
    Tile<T> tile;
    tile.s = scores_;
    tile.ds = gradients_;
    tile.raw = s_.pass.stages.score->needs_raw() ? raw_ : nullptr;
    tile.scores = kept_scores_;
    bool first = true;
    for (size_t h = key_head * g.group; h < (key_head + 1) * g.group; ++h) {
      std::fill_n(partial_, s_.partial_size, T(0));
      for (size_t b = s_.block_count; b-- > 0;) {
        if (b * kMaxQueries < g.query_count[batch])
          visit(batch, h, b, unit, k0, seen, tile, &first);
      }
      if (h + 1 == (key_head + 1) * g.group) finish_keys(batch, key_head, k0, nk, first);
      if (s_.partial_size) {
        Turn& turn = s_.head_turns[s_.index(batch, h)];
        turn.wait_for(unit);
        T* total = s_.total(batch, h);
        for (size_t i = 0; i < s_.partial_size; ++i) total[i] += partial_[i];
        turn.pass_on();
      }
    }
  }

 private:
  void lay(Layout& layout) {
    const Geometry& g = s_.geometry;
    const auto& stages = s_.pass.stages;
    const size_t tile = kMaxQueries * tile_stride(kUnitKeys) + kPanelKeys;
    run_ = s_.keys.lay(layout, kUnitKeys);
    scores_ = layout.take<T>(tile);
    gradients_ = layout.take<T>(tile);
    dropped_ = s_.pass.dropout ? layout.take<T>(tile) : nullptr;
    raw_ = stages.score->needs_raw() ? layout.take<T>(tile) : nullptr;
    kept_scores_ = stages.normaliser->needs_scores() ? layout.take<T>(tile) : nullptr;
    saved_.clear();
    modifiers_.clear();
    for (const auto& m : stages.modifiers) {
      saved_.push_back(m->keeps_tile() ? layout.take<T>(tile) : nullptr);
      modifiers_.push_back(layout.take<T>(kMaxQueries * m->row_scratch()));
    }
    dk_scratch_ = layout.take<T>(kUnitKeys * s_.keys.key_width());
    dv_scratch_ = layout.take<T>(kUnitKeys * g.value_width);
    d_plain_ = layout.take<T>(kUnitKeys * g.key_width);
    partial_ = layout.take<T>(s_.partial_size + 1);
    marks_ = layout.take<Marks>(1);
  }

  // Where the sums over queries go: the result itself where it has the right type.
  void begin_keys(size_t batch, size_t key_head, size_t k0) {
    const Geometry& g = s_.geometry;
    const Gradients& wanted = s_.gradients;
    const auto& score = *s_.pass.stages.score;
    const bool through = score.prepared_key_width() && score.partial_size();
    dk_ = s_.wants_key || through ? dk_scratch_ : nullptr;
    dk_stride_ = s_.keys.key_width();
    dv_ = s_.wants_value ? dv_scratch_ : nullptr;
    dv_stride_ = g.value_width;
    if (s_.wants_key && !score.prepared_key_width()) {
      const Rows rows = g.key_rows(wanted.key, batch, key_head);
      if (T* as_is = direct<T>(wanted.key.dtype, rows, k0)) {
        dk_ = as_is;
        dk_stride_ = static_cast<size_t>(rows.stride);
      }
    }
    if (s_.wants_value) {
      const Rows rows = g.key_rows(wanted.value, batch, key_head);
      if (T* as_is = direct<T>(wanted.value.dtype, rows, k0)) {
        dv_ = as_is;
        dv_stride_ = static_cast<size_t>(rows.stride);
      }
    }
  }

  void visit(size_t batch, size_t head, size_t b, size_t unit, size_t k0, size_t nk, Tile<T>& tile,
             bool* first) {
    QueryBlock<T>& block = s_.at(batch, head, b);
    if (unit < block.first_unit || unit >= block.end_unit) return;
    Turn& turn = s_.turns[s_.index(batch, head) * s_.block_count + b];
    s_.show(batch, head, b, &tile);
    const auto& structure = *s_.pass.structure;
    Span span{k0, nk,
              nk == 0 ? Cover::kNone : structure.cover(batch, head, tile.q0, tile.nq, k0, nk)};
    bool waited = false;
    const auto wait = [&] {
      if (!waited) turn.wait_for(unit);
      waited = true;
    };
    if (span.cover != Cover::kNone && describe(structure, span, *marks_, &tile)) {
      s_.keys.show(run_, span.k0, span.nk, &tile);
      tile.finite = tile.finite && block.finite;
      tile.s_stride = tile_stride(span.nk);
      show_sums(span, k0, nk, tile, first);
      differentiate(tile, block, first, wait);
    }
    wait();
    turn.pass_on();
  }

  // The sums over queries of the keys that the tile has. They begin at zero where the first tile does
  // not store them all.
  void show_sums(const Span& span, size_t k0, size_t nk, Tile<T>& tile, bool* first) {
    if (*first && span.nk < nk) {
      clear_sums(0, nk);
      *first = false;
    }
    const size_t front = span.k0 - k0;
    tile.dk = dk_ ? dk_ + front * dk_stride_ : nullptr;
    tile.dk_stride = dk_stride_;
    tile.dv = dv_ ? dv_ + front * dv_stride_ : nullptr;
    tile.dv_stride = dv_stride_;
  }
  void clear_sums(size_t from, size_t to) {
    for (size_t j = from; j < to; ++j) {
      if (dk_) std::fill_n(dk_ + j * dk_stride_, s_.keys.key_width(), T(0));
      if (dv_) std::fill_n(dv_ + j * dv_stride_, s_.geometry.value_width, T(0));
    }
  }

  template <class Wait>
  void differentiate(Tile<T>& tile, QueryBlock<T>& block, bool* first, const Wait& wait) {
    const auto& [score, modifiers, normaliser] = s_.pass.stages;
    const auto& products = engine::products<T>();
    const auto& loops = row_loops<T>();
    const size_t n = modifiers.size(), elements = tile.nq * tile.s_stride;
    T* const score_partial = score->partial_size() ? partial_ : nullptr;
    // Weights again, from the saved statistics.
    for (size_t m = 0; m < n; ++m) modifiers[m]->begin_rows(tile, modifiers_[m]);
    const size_t added = score_and_add(s_.pass.stages, tile, modifiers_);
    if (tile.raw) std::copy_n(tile.s, elements, tile.raw);
    for (size_t m = added; m < n; ++m) modifiers[m]->apply(tile, modifiers_[m], saved_[m]);
    loops.mask(tile, tile.s, s_.pass.masked);
    if (kept_scores_) std::copy_n(tile.s, elements, kept_scores_);
    std::optional<Spoiled<T>> spoiled;
    if (block.spoiled) spoiled.emplace(tile, normaliser->face());
    normaliser->weights(tile);
    if (spoiled) spoiled->put(tile.s, tile.s_stride);
    // Their gradient, and that of the values.
    products.score(tile, tile.g, tile.g_stride, tile.value_width, tile.v_panel, {}, tile.ds);
    T* weights = tile.s;
    if (dropped_) drop(s_.pass.dropout, tile, tile.s, dropped_);
    if (dropped_) tile.s = dropped_;
    for_partials([&](size_t m, T* partial) {
      s_.pass.stages.modifiers[m]->backward_weights(tile, modifiers_[m], partial);
    });
    if (tile.dv) {
      products.transposed(tile, tile.s, tile.g, tile.g_stride, tile.value_width, T(1),
                          *first ? Into::kStore : Into::kAdd, tile.dv, tile.dv_stride);
    }
    tile.s = weights;
    if (dropped_) drop(s_.pass.dropout, tile, tile.ds, tile.ds);
    loops.mask(tile, tile.ds, T(0));
    normaliser->backward(tile);
    if (normaliser->face() == Face::kValue) loops.mask(tile, tile.ds, T(0));
    if (spoiled) spoiled->put(tile.ds, tile.s_stride);
    if (schedule_.by_turn) wait();
    T* partial = partial_ + s_.partial_size;
    for (size_t m = n; m-- > 0;) {
      partial -= modifiers[m]->partial_size();
      modifiers[m]->backward(tile, modifiers_[m], saved_[m],
                             modifiers[m]->partial_size() ? partial : nullptr);
    }
    // And of what the score was made from.
    if (score->fused_backward()) {
      wait();
      score->backward(tile, !block.touched, *first, score_partial);
    } else {
      if (score_partial) score->backward_parameters(tile, score_partial);
      tile.first = *first;
      if (tile.dk) score->backward_key(tile);
      if (tile.dq) {
        wait();
        tile.first = !block.touched;
        score->backward_query(tile);
      }
    }
    if (tile.dq) {
      wait();
      for (size_t m = 0; m < n; ++m) modifiers[m]->backward_query(tile, modifiers_[m]);
      block.touched = true;
    }
    *first = false;
  }

  // body(m, its part of the partial sums, or null)
  template <class Body>
  void for_partials(const Body& body) {
    T* partial = partial_ + s_.pass.stages.score->partial_size();
    for (size_t m = 0; m < modifiers_.size(); ++m) {
      const size_t size = s_.pass.stages.modifiers[m]->partial_size();
      body(m, size ? partial : nullptr);
      partial += size;
    }
  }

  void finish_keys(size_t batch, size_t key_head, size_t k0, size_t nk, bool nothing) {
    const Geometry& g = s_.geometry;
    const Gradients& wanted = s_.gradients;
    const auto& score = *s_.pass.stages.score;
    const size_t seen = std::min(k0 + nk, std::max(k0, g.key_limit[batch])) - k0;
    clear_sums(nothing ? 0 : seen, nk);
    if (dv_ == dv_scratch_ && dv_) {
      store_rows(dv_, dv_stride_, nk, g.value_width, wanted.value.dtype,
                 g.key_rows(wanted.value, batch, key_head), k0);
    }
    if (dk_ != dk_scratch_ || !dk_) return;
    const T* d_rows = dk_;
    size_t d_stride = dk_stride_;
    if (score.prepared_key_width()) {
      T* d_plain = d_plain_;
      d_stride = g.key_width;
      if (s_.wants_key) {
        const Rows rows = g.key_rows(wanted.key, batch, key_head);
        if (T* as_is = direct<T>(wanted.key.dtype, rows, k0)) {
          d_plain = as_is;
          d_stride = static_cast<size_t>(rows.stride);
        }
      }
      // Prepared keys past the length do not exist; their gradient is zero.
      for (size_t j = seen; j < nk; ++j) std::fill_n(d_plain + j * d_stride, g.key_width, T(0));
      const T* plain = run_.k_plain;
      size_t stride = g.key_width;
      if (!plain) {
        const Rows rows = g.key_rows(s_.pass.problem.key, batch, key_head);
        plain = direct<T>(s_.pass.problem.key.dtype, rows, k0);
        stride = static_cast<size_t>(rows.stride);
      }
      if (seen > 0) {
        score.unprepare_key(batch, key_head, k0, seen, plain, stride, dk_, d_plain, d_stride,
                            score.partial_size() ? partial_ : nullptr);
      }
      d_rows = d_plain;
      if (d_plain != d_plain_) return;
    }
    if (s_.wants_key) {
      store_rows(d_rows, d_stride, nk, g.key_width, wanted.key.dtype,
                 g.key_rows(wanted.key, batch, key_head), k0);
    }
  }

  BackwardState<T>& s_;
  const Schedule& schedule_;
  Scratch memory_;
  KeyRun<T> run_;
  T *scores_, *gradients_, *dropped_, *raw_, *kept_scores_, *dk_scratch_, *dv_scratch_, *d_plain_,
      *partial_;
  T *dk_ = nullptr, *dv_ = nullptr;
  size_t dk_stride_ = 0, dv_stride_ = 0;
  Vector<T*> saved_, modifiers_;
  Marks* marks_;
};

}  // namespace

template <class T>
void run_units(BackwardState<T>& state, const Parallel& parallel) {
  const Geometry& g = state.geometry;
  const Schedule schedule(state.pass.stages);
  const size_t units = (g.max_keys + kUnitKeys - 1) / kUnitKeys;
  const size_t batches = schedule.all_batches ? 1 : g.batches,
               heads = schedule.all_heads ? 1 : g.key_heads;
  const size_t runs = schedule.all_keys ? 1 : units, tickets = batches * heads * runs;
  Vector<Unit<T>> workers;
  workers.reserve(slots(parallel, tickets));
  for (size_t i = 0; i < slots(parallel, tickets); ++i) workers.emplace_back(state, schedule);
  const auto body = [&](size_t worker, size_t ticket) {
    const size_t u = ticket % runs, h = ticket / runs % heads, b = ticket / runs / heads;
    for (size_t batch = b; batch < (schedule.all_batches ? g.batches : b + 1); ++batch) {
      for (size_t head = h; head < (schedule.all_heads ? g.key_heads : h + 1); ++head) {
        for (size_t unit = u; unit < (schedule.all_keys ? units : u + 1); ++unit)
          workers[worker].run(batch, head, unit);
      }
    }
  };
  run_tickets(parallel, tickets, body, [&] {
    for (Turn& turn : state.turns) turn.give_up();
    for (Turn& turn : state.head_turns) turn.give_up();
  });
}
template void run_units<float>(BackwardState<float>&, const Parallel&);
template void run_units<double>(BackwardState<double>&, const Parallel&);

}  // namespace fovea::engine
