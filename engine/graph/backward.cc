// Backward on a graph, in two passes. The first goes by query row: weights again, gradients of scores,
// dQ; it stores what the second pass needs of each edge, O(edges x heads). The second goes by key,
// with the transposed graph: dK and dV. Every row of a result is written by one worker.
#include "engine/graph/backward.h"

namespace fovea::engine {

template <class T>
GraphGradients<T>::GraphGradients(const Problem& problem, const Geometry& geometry_,
                                  const Result& saved, const Gradients& gradients,
                                  const Parallel& parallel)
    : state(problem, geometry_, saved, gradients),
      pass(state.pass),
      geometry(geometry_),
      graph(geometry_),
      keys(pass, parallel),
      weights(graph.edges * geometry.heads),
      d_scores(graph.edges * geometry.heads),
      raw(pass.stages.score->needs_raw() ? graph.edges * geometry.heads : 0) {}

template <class T>
void GraphGradients<T>::add_partials(const Vector<T>& partials, size_t chunks, size_t group) {
  const size_t size = state.partial_size, heads = geometry.heads / group;
  for (size_t c = 0; c < chunks; ++c) {
    for (size_t h = 0; h < heads; ++h) {
      T* total = state.total(0, h * group);
      for (size_t i = 0; i < size; ++i) total[i] += partials[(c * heads + h) * size + i];
    }
  }
}

namespace {

template <class T>
bool finite_operands(const GraphGradients<T>& x) {
  const auto& loops = row_loops<T>();
  bool finite = true;
  for (size_t h = 0; h < x.geometry.key_heads; ++h) {
    finite = finite &&
             loops.finite(x.keys.k(h), x.keys.k_stride(h), x.graph.keys, x.keys.key_width()) &&
             loops.finite(x.keys.v(h), x.keys.v_stride(h), x.graph.keys, x.geometry.value_width);
  }
  for (const auto& block : x.state.blocks) finite = finite && block.finite;
  return finite;
}

}  // namespace

template <class T>
void graph_backward(const Problem& problem, const Geometry& g, const Result& saved,
                    const Gradients& gradients, const Parallel& parallel) {
  GraphGradients<T> x(problem, g, saved, gradients, parallel);
  prepare_blocks(x.state, parallel);
  x.finite = finite_operands(x);
  backward_by_row(x, parallel);
  backward_by_key(x, parallel);
  finish_blocks(x.state, parallel);
}

template struct GraphGradients<float>;
template struct GraphGradients<double>;
template void graph_backward<float>(const Problem&, const Geometry&, const Result&,
                                    const Gradients&, const Parallel&);
template void graph_backward<double>(const Problem&, const Geometry&, const Result&,
                                     const Gradients&, const Parallel&);

}  // namespace fovea::engine
