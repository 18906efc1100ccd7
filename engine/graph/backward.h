// What the two passes of backward on a graph share. engine/graph/backward.cc says what each one does.
#pragma once

#include "engine/graph/graph.h"
#include "engine/tiles/backward.h"

namespace fovea::engine {

template <class T>
struct GraphGradients {
  GraphGradients(const Problem& problem, const Geometry& geometry, const Result& saved,
                 const Gradients& gradients, const Parallel& parallel);

  // Adds to the sums of parameter gradients what each chunk found, in the order of the chunks.
  // `partials`: [chunks][heads / group][partial_size].
  void add_partials(const Vector<T>& partials, size_t chunks, size_t group);

  BackwardState<T> state;
  const Pass<T>& pass;
  const Geometry& geometry;
  const GraphView graph;
  const GraphKeys<T> keys;
  // What the pass by key needs of each edge, [heads][edges]: its weight after dropout, the gradient of its
  // score, and its raw score where the score wants that.
  ScratchArray<T> weights, d_scores, raw;
  bool finite = true;  // keys, values, queries and gradients of the output
};

// Weights again, gradients of scores, dQ.
template <class T>
void backward_by_row(GraphGradients<T>& x, const Parallel& parallel);
// dK and dV.
template <class T>
void backward_by_key(GraphGradients<T>& x, const Parallel& parallel);

}  // namespace fovea::engine
