// Backward by tiles, and what its phases share: for each block of queries, rows and statistics in
// the arithmetic type; for each (batch, head), the sums of parameter gradients.
#pragma once

#include <memory>

#include "engine/runtime/parallel.h"
#include "engine/tiles/pass.h"

namespace fovea::engine {

// Keys in one unit of work: with 64 queries, a score tile of 32 KB and the panels of keys and values
// stay in the caches.
inline constexpr size_t kUnitKeys = 128;

// One block of queries of one head.
template <class T>
struct QueryBlock {
  const T *q = nullptr, *g = nullptr;  // as the score wants them; gradient of the output
  size_t q_stride = 0, g_stride = 0;
  T* dq = nullptr;  // of the rows in q
  size_t dq_stride = 0;
  size_t first_unit = 0, end_unit = 0;  // key units that may meet it
  bool finite = true;
  bool spoiled = false;  // a row of it sees a score of NaN or +infinity
  bool touched = false;  // dq holds something
};

template <class T>
struct BackwardState {
  BackwardState(const Problem& problem, const Geometry& geometry, const Result& saved,
                const Gradients& gradients);

  // Loads a block's rows, and fills its row terms (from the output, where the normaliser wants
  // that).
  void prepare(size_t batch, size_t head, size_t block);
  // After all units: turns the gradient of a head's prepared queries into that of the queries.
  void finish_head(size_t batch, size_t head, T* plain, T* d_plain);
  void show(size_t batch, size_t head, size_t block, Tile<T>* tile) const;

  size_t index(size_t batch, size_t head) const { return batch * geometry.heads + head; }
  size_t row(size_t batch, size_t head, size_t query) const {
    return index(batch, head) * geometry.max_queries + query;
  }
  QueryBlock<T>& at(size_t batch, size_t head, size_t block) {
    return blocks[index(batch, head) * block_count + block];
  }
  const QueryBlock<T>& at(size_t batch, size_t head, size_t block) const {
    return blocks[index(batch, head) * block_count + block];
  }
  // The partial sums of a (batch, head): the score's, then each modifier's.
  T* total(size_t batch, size_t head) { return totals.data() + index(batch, head) * partial_size; }

  Pass<T> pass;
  const Geometry& geometry;
  const Result& saved;
  const Gradients& gradients;
  KeyLoader<T> keys;
  size_t block_count;   // blocks of kMaxQueries queries, of the longest item
  size_t partial_size;  // of score and modifiers together
  bool wants_query, wants_key, wants_value;

  Vector<QueryBlock<T>> blocks;
  Vector<Turn> turns;       // one per block: which key unit may add to its dq
  Vector<Turn> head_turns;  // one per (batch, head): which key unit may add to its totals
  Vector<T> totals, normaliser_partials;
  ScratchArray<T> row_terms, statistics, d_lse, q_rows, g_rows, dq_rows;

 private:
  const T* rows_in_type(const View& view, size_t batch, size_t head, size_t q0, size_t nq,
                        size_t width, T* scratch, size_t* stride) const;
};

// The first and the last phase: every block prepared; gradients of queries and parameters finished
// and stored.
template <class T>
void prepare_blocks(BackwardState<T>& state, const Parallel& parallel);
template <class T>
void finish_blocks(BackwardState<T>& state, const Parallel& parallel);
// Row terms that need whole rows of weights and gradients (sparsemax, entmax).
template <class T>
void solve_row_terms(BackwardState<T>& state, const Parallel& parallel);
// The main phase.
template <class T>
void run_units(BackwardState<T>& state, const Parallel& parallel);

// All phases, for any problem but a graph's.
template <class T>
void tiles_backward(const Problem& problem, const Geometry& geometry, const Result& saved,
                    const Gradients& gradients, const Parallel& parallel);

}  // namespace fovea::engine
