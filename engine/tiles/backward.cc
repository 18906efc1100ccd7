// Backward in three phases: the rows and row terms of every block of queries; the units
// (backward_units.cc); the final gradients of queries and parameters.
#include "engine/tiles/backward.h"

namespace fovea::engine {
namespace {

template <class T>
void store_parameters(BackwardState<T>& state) {
  const Geometry& g = state.geometry;
  const auto& [score, modifiers, normaliser] = state.pass.stages;
  for (size_t batch = 0; batch < g.batches; ++batch) {
    for (size_t head = 0; head < g.heads; ++head) {
      if (state.partial_size) {
        const T* partial = state.total(batch, head);
        if (score->partial_size()) score->store_parameters(batch, head, partial);
        partial += score->partial_size();
        for (const auto& modifier : modifiers) {
          if (modifier->partial_size()) modifier->store_parameters(batch, head, partial);
          partial += modifier->partial_size();
        }
      }
      if (const size_t size = normaliser->partial_size()) {
        for (size_t b = 0; b < state.block_count; ++b) {
          normaliser->store_parameters(
              head, state.normaliser_partials.data() +
                        (state.index(batch, head) * state.block_count + b) * size);
        }
      }
    }
  }
}

}  // namespace

template <class T>
void prepare_blocks(BackwardState<T>& state, const Parallel& parallel) {
  const Geometry& g = state.geometry;
  run_tickets(parallel, g.batches * g.heads * state.block_count, [&](size_t, size_t ticket) {
    const size_t head = ticket / state.block_count;
    state.prepare(head / g.heads, head % g.heads, ticket % state.block_count);
  });
}

template <class T>
void finish_blocks(BackwardState<T>& state, const Parallel& parallel) {
  const Geometry& g = state.geometry;
  const size_t heads = g.batches * g.heads,
               width = std::max(g.query_width, state.pass.query_width());
  Vector<ScratchArray<T>> scratch(slots(parallel, heads));
  for (auto& s : scratch) s = ScratchArray<T>(2 * kMaxQueries * width);
  run_tickets(parallel, heads, [&](size_t worker, size_t head) {
    T* plain = scratch[worker].data();
    state.finish_head(head / g.heads, head % g.heads, plain, plain + kMaxQueries * width);
  });
  store_parameters(state);
}

template void prepare_blocks<float>(BackwardState<float>&, const Parallel&);
template void prepare_blocks<double>(BackwardState<double>&, const Parallel&);
template void finish_blocks<float>(BackwardState<float>&, const Parallel&);
template void finish_blocks<double>(BackwardState<double>&, const Parallel&);

template <class T>
void tiles_backward(const Problem& problem, const Geometry& g, const Result& saved,
                    const Gradients& gradients, const Parallel& parallel) {
  BackwardState<T> state(problem, g, saved, gradients);
  prepare_blocks(state, parallel);
  if (state.pass.stages.normaliser->row_term() == RowTerm::kRows) solve_row_terms(state, parallel);
  run_units(state, parallel);
  finish_blocks(state, parallel);
}
template void tiles_backward<float>(const Problem&, const Geometry&, const Result&,
                                    const Gradients&, const Parallel&);
template void tiles_backward<double>(const Problem&, const Geometry&, const Result&,
                                     const Gradients&, const Parallel&);

}  // namespace fovea::engine
