// Row terms of normalisers that need whole rows: weights and their gradients again, a strip of rows at a time.
#include "engine/backward.h"
#include "engine/caches.h"

namespace fovea::engine {
namespace {

template <class T>
class RowTerms {
 public:
  RowTerms(BackwardState<T>& state, size_t rows) : s_(state), rows_(rows) {
    Layout sizes;
    lay(sizes);
    memory_ = Scratch(sizes.size());
    Layout layout(memory_.data());
    lay(layout);
  }

  // One block of queries against its whole head; keys are loaded once a head.
  void run(size_t batch, size_t head, size_t b) {
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
    Tile<T> whole;
    s_.show(batch, head, b, &whole);
    const size_t size = s_.pass.stages.normaliser->partial_size();
    T* partial = s_.normaliser_partials.data() + (s_.index(batch, head) * s_.block_count + b) * size;
    for (size_t r = 0; r < whole.nq; r += rows_) {
      Tile<T> tile = whole;
      tile.q0 += r;
      tile.nq = std::min(rows_, whole.nq - r);
      tile.q += r * tile.q_stride;
      tile.g += r * tile.g_stride;
      tile.stats += r * kStatistics;
      tile.row_term += r;
      if (tile.d_lse) tile.d_lse += r;
      strip(tile, s_.at(batch, head, b).finite);
      s_.pass.stages.normaliser->row_terms(tile, s_.row_terms.data() + s_.row(batch, head, tile.q0));
      if (size) s_.pass.stages.normaliser->backward_parameters(tile, partial);
    }
  }

 private:
  void lay(Layout& layout) {
    const size_t all = s_.geometry.max_keys, tile = rows_ * tile_stride(all) + kPanelKeys;
    run_ = s_.keys.lay(layout, all);
    scores_ = layout.take<T>(tile);
    gradients_ = layout.take<T>(tile);
    modifiers_.clear();
    for (const auto& m : s_.pass.stages.modifiers) modifiers_.push_back(layout.take<T>(kMaxQueries * m->row_scratch()));
    marks_ = layout.take<Marks>(1);
  }

  // Leaves all weights of the tile's rows in tile.s and their gradients in tile.ds.
  void strip(Tile<T>& tile, bool finite) {
    const auto& [score, modifiers, normaliser] = s_.pass.stages;
    const auto& loops = row_loops<T>();
    for (size_t m = 0; m < modifiers.size(); ++m) modifiers[m]->begin_rows(tile, modifiers_[m]);
    Reach reach(*s_.pass.structure, tile.batch, tile.head, tile.q0, tile.nq, s_.geometry.key_count[tile.batch]);
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
      for (size_t m = 0; m < modifiers.size(); ++m) modifiers[m]->backward_weights(tile, modifiers_[m], nullptr);
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

  // tile.ds = g . v where a weight is not zero: what lies outside the support has no part in a row term. A product of the whole
  // tile where the support is not small.
  void support_gradients(const Tile<T>& tile) const {
    const auto& loops = row_loops<T>();
    size_t left = tile.nq * tile.nk / 32;
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* weights = tile.s + r * tile.s_stride;
      T* out = tile.ds + r * tile.s_stride;
      const size_t end = tile.row_end(r);
      for (size_t c = loops.find_above(weights, tile.row_begin(r), end, T(0)); c < end; c = loops.find_above(weights, c + 1, end, T(0))) {
        if (left-- == 0) return products<T>().score(tile, tile.g, tile.g_stride, tile.value_width, tile.v_panel, {}, tile.ds);
        const int32_t index = static_cast<int32_t>(c);
        loops.gather_dots(tile.g + r * tile.g_stride, &index, 1, tile.v, tile.v_stride, tile.value_width, out + c);
      }
    }
  }

  BackwardState<T>& s_;
  const size_t rows_;
  Scratch memory_;
  KeyRun<T> run_;
  bool loaded_ = false;
  size_t batch_ = 0, key_head_ = 0;
  T *scores_, *gradients_;
  std::vector<T*> modifiers_;
  Marks* marks_;
};

}  // namespace

template <class T>
void solve_row_terms(BackwardState<T>& state, const Parallel& parallel) {
  const Geometry& g = state.geometry;
  const size_t rows = strip_rows(g.max_keys, 2 * sizeof(T));  // weights and their gradients
  const size_t tickets = g.batches * g.heads * state.block_count;
  std::vector<RowTerms<T>> workers;
  workers.reserve(slots(parallel, tickets));
  for (size_t i = 0; i < slots(parallel, tickets); ++i) workers.emplace_back(state, rows);
  run_tickets(parallel, tickets, [&](size_t worker, size_t ticket) {
    const size_t head = ticket / state.block_count;
    workers[worker].run(head / g.heads, head % g.heads, ticket % state.block_count);
  });
}
template void solve_row_terms<float>(BackwardState<float>&, const Parallel&);
template void solve_row_terms<double>(BackwardState<double>&, const Parallel&);

}  // namespace fovea::engine
