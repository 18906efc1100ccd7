// Row terms of normalisers that need whole rows of weights and their gradients.
#include "engine/tiles/backward_rows.h"

namespace fovea::engine {
namespace {

template <class T>
class RowTerms : RowStrips<T> {
  using Strips = RowStrips<T>;
  using Strips::s_;

 public:
  RowTerms(BackwardState<T>& state, size_t rows) : Strips(state, rows) {
    memory_ = lay_out([&](Layout& layout) { lay(layout); });
  }

  // Of one block of queries.
  void solve(size_t batch, size_t head, size_t b) {
    const auto& normaliser = *s_.pass.stages.normaliser;
    const size_t size = normaliser.partial_size();
    T* partial =
        s_.normaliser_partials.data() + (s_.index(batch, head) * s_.block_count + b) * size;
    Strips::each_strip(batch, head, b, [&](Tile<T>& tile, bool finite) {
      strip(tile, finite);
      normaliser.row_terms(tile, s_.row_terms.data() + s_.row(batch, head, tile.q0));
      if (size) normaliser.backward_parameters(tile, partial);
    });
  }

 private:
  void lay(Layout& layout) {
    Strips::lay(layout);
    gradients_ = layout.take<T>(Strips::strip_size());
  }

  // Leaves all weights of the tile's rows in tile.s and their gradients in tile.ds.
  void strip(Tile<T>& tile, bool finite) {
    const auto& modifiers = s_.pass.stages.modifiers;
    std::fill_n(gradients_, Strips::strip_size(), T(0));
    Strips::score_rows(tile, finite, T(0), [&](Tile<T>& part, size_t column) {
      part.ds = gradients_ + column;
      s_.pass.stages.normaliser->weights(part);
      support_gradients(part);
      for (size_t m = 0; m < modifiers.size(); ++m)
        modifiers[m]->backward_weights(part, Strips::modifiers_[m], nullptr);
      if (s_.pass.dropout) drop(s_.pass.dropout, part, part.ds, part.ds);
      row_loops<T>().mask(part, part.ds, T(0));
    });
    tile.ds = gradients_;
    row_loops<T>().mask(tile, tile.ds, T(0));
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

  Scratch memory_;
  T* gradients_;
};

}  // namespace

template <class T>
void solve_row_terms(BackwardState<T>& state, const Parallel& parallel) {
  const Geometry& g = state.geometry;
  const size_t tickets = g.batches * g.heads * state.block_count;
  auto workers = strip_workers<RowTerms<T>>(state, parallel, tickets, 2);  // weights, gradients
  run_tickets(parallel, tickets, [&](size_t worker, size_t ticket) {
    const size_t head = ticket / state.block_count;
    workers[worker].solve(head / g.heads, head % g.heads, ticket % state.block_count);
  });
}
template void solve_row_terms<float>(BackwardState<float>&, const Parallel&);
template void solve_row_terms<double>(BackwardState<double>&, const Parallel&);

}  // namespace fovea::engine
