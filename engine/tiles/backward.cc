// Backward in three phases: rows and row terms of every block of queries; the units
// (backward_units.cc); what is left to turn into gradients of queries and parameters.
#include "engine/tiles/backward.h"

#include "engine/call/check.h"
#include "engine/graph/graph.h"
#include "engine/paths/rank_one_graph.h"
#include "engine/paths/kernel_mean.h"
#include "engine/paths/strided.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

template <class T>
void clear(const View& view) {
  const auto size = [&](int d) { return d < view.rank ? view.size[d] : 1; };
  for (int64_t a = 0; a < size(0); ++a)
    for (int64_t b = 0; b < size(1); ++b)
      for (int64_t c = 0; c < size(2); ++c)
        for (int64_t d = 0; d < size(3); ++d) element<T>(view, a, b, c, d) = 0;
}

// Zeroes every array a choice refers to.
template <class T, class Choice>
void clear_fields(Choice choice) {
  choice.fields([]<class Field>(const char*, Field& field) {
    if constexpr (std::is_same_v<Field, View>) {
      if (field) clear<T>(field);
    }
  });
}

template <class T>
void clear_parameters(const Gradients& gradients) {
  std::visit([](const auto& kind) { clear_fields<T>(kind); }, gradients.score.kind);
  for (const auto& modifier : gradients.score.modifiers) {
    std::visit([](const auto& kind) { clear_fields<T>(kind); }, modifier);
  }
  std::visit([](const auto& kind) { clear_fields<T>(kind); }, gradients.normaliser);
}

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

template <class T>
void run_tiles(const Problem& problem, const Geometry& g, const Result& saved,
               const Gradients& gradients, const Parallel& parallel) {
  BackwardState<T> state(problem, g, saved, gradients);
  prepare_blocks(state, parallel);
  if (!run_supports(state, parallel)) {
    if (state.pass.stages.normaliser->row_term() == RowTerm::kRows)
      solve_row_terms(state, parallel);
    run_units(state, parallel);
  }
  finish_blocks(state, parallel);
}

template <class T>
void run_backward(const Problem& problem, const Geometry& g, const Result& saved,
                  const Gradients& gradients, const Parallel& parallel) {
  clear_parameters<T>(gradients);
  if (g.graph && rank_one_backward(problem, g, saved, gradients, parallel)) return;
  if (g.graph) return graph_backward<T>(problem, g, saved, gradients, parallel);
  const auto run_part = [&](const Problem& part, const Result& part_saved,
                            const Gradients& part_gradients) {
    run_tiles<T>(part, resolve(part), part_saved, part_gradients, parallel);
  };
  if (kernel_mean_backward(problem, g, saved, gradients, parallel)) return;
  if (strided_backward<T>(problem, g, saved, gradients, run_part)) return;
  run_tiles<T>(problem, g, saved, gradients, parallel);
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
  std::vector<ScratchArray<T>> scratch(slots(parallel, heads));
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

void backward(const Problem& problem, const Result& saved, const Gradients& gradients,
              const Parallel& parallel) {
  const Geometry geometry = resolve(problem);
  check_result(problem, geometry, saved);
  FOVEA_CHECK(saved.statistics || geometry.max_queries * geometry.heads == 0,
              "statistics: missing, expected what forward wrote");
  check_gradients(problem, geometry, gradients);
  if (is_double(geometry.storage))
    run_backward<double>(problem, geometry, saved, gradients, parallel);
  else
    run_backward<float>(problem, geometry, saved, gradients, parallel);
}

}  // namespace fovea::engine
