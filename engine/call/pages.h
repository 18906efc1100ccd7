// Keys and values in pages (Paged), for the paths that read rows one after another: a copy of them,
// and the way back for its gradients.
#pragma once

#include "engine/call/problem.h"
#include "engine/runtime/scratch.h"

namespace fovea::engine {

class CopiedPages {
 public:
  // `geometry` is the problem's, and has pages.
  CopiedPages(const Problem& problem, const Geometry& geometry, const Parallel& parallel);

  // The same problem on the copy, [B, Hkv, S, E], with lengths.
  const Problem& problem() const { return problem_; }

  // Gradients with places for those of the copy, where those of the pools are wanted.
  Gradients places(const Gradients& wanted);
  // Sums them up, page by page and in the order of the items, into the pools' gradients.
  void add_up(const Gradients& wanted, const Parallel& parallel) const;

 private:
  View rows_of(const View& pool, Scratch* memory) const;
  void copy(const View& pool, const View& rows, const Parallel& parallel) const;
  void add_up(const View& rows, const View& pool, const Parallel& parallel) const;

  const Geometry& g_;
  Problem problem_;
  Scratch key_, value_, d_key_, d_value_;
  View key_places_, value_places_;
};

}  // namespace fovea::engine
