// Forward by tiles. Its core, which other paths use too, takes a block of queries through all keys
// that it may see, in order, stage by stage.
#pragma once

#include <functional>

#include "engine/loops/prefetch.h"
#include "engine/tiles/pass.h"
#include "engine/call/view.h"

namespace fovea::engine {

// After the last key: makes the output rows of a tile final (rows.carry), counts and reports rows.
template <class T>
void settle_rows(const Pass<T>& pass, TileScratch<T>& scratch, Tile<T>& tile, Report& report);
// Writes output rows (where they are in scratch), lse and statistics of a block of queries.
template <class T>
void store_results(const Pass<T>& pass, const Result& result, const TileScratch<T>& scratch,
                   const Tile<T>& tile);
// Where a block's output rows are summed: the result itself where it has the right type.
template <class T>
void show_output(const Pass<T>& pass, const Result& result, const TileScratch<T>& scratch,
                 Tile<T>* tile);

// Adds rows [from, to) of a view to the list of what to prefetch.
inline void prefetch_rows(const View& view, const Rows& rows, size_t from, size_t to, size_t width,
                          PrefetchList* prefetch) {
  const size_t size = size_of(view.dtype);
  const int64_t stride = rows.stride * static_cast<int64_t>(size);
  if (from < to)
    prefetch->add(rows.data + static_cast<int64_t>(from) * stride, stride, to - from, width * size);
}

template <class T>
class ForwardBlock {
 public:
  ForwardBlock(const Pass<T>& pass, const Result& result, const KeyLoader<T>& keys, Report& report);

  // Scratch of one worker.
  size_t columns() const { return columns_; }  // of its score tile
  size_t rows() const { return rows_; }        // queries per block
  void run(TileScratch<T>& scratch, KeyRun<T>& keys, size_t batch, size_t head, size_t q0,
           size_t nq) const;
  // The same; once the keys are there, coming() says what to prefetch meanwhile.
  void run(TileScratch<T>& scratch, KeyRun<T>& keys, size_t batch, size_t head, size_t q0,
           size_t nq, const std::function<PrefetchList*()>& coming) const;
  // The weights instead of the output: put(tile) for each tile of them, ascending, masked places
  // -infinity.
  using Put = std::function<void(const Tile<T>& tile)>;
  void weights(TileScratch<T>& scratch, const KeyRun<T>& keys, size_t batch, size_t head, size_t q0,
               size_t nq, const Put& put) const;

 private:
  Tile<T> begin(TileScratch<T>& scratch, size_t batch, size_t head, size_t q0, size_t nq) const;
  void stream(TileScratch<T>& scratch, const KeyRun<T>& keys, Reach& reach, Tile<T>& tile) const;
  void solve(TileScratch<T>& scratch, const KeyRun<T>& keys, Reach& reach, Tile<T>& tile) const;
  // Fills the strip of all scores of a threshold normaliser's rows.
  void fill_strip(TileScratch<T>& scratch, const KeyRun<T>& keys, Reach& reach,
                  Tile<T>& tile) const;

  const Pass<T>& pass_;
  const Result& result_;
  const KeyLoader<T>& keys_;
  Report& report_;
  size_t columns_, rows_;
};

// Any problem but a graph's. Forward returns the number of queries that saw no key.
template <class T>
int64_t tiles_forward(const Problem& problem, const Geometry& geometry, const Result& result,
                      const Parallel& parallel);
template <class T>
void tiles_weights(const Problem& problem, const Geometry& geometry, const Selection& selection,
                   const SelectedWeights& out, const Parallel& parallel);

}  // namespace fovea::engine
