#include "engine/call/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/call/check.h"
#include "engine/call/view.h"
#include "engine/loops/rows.h"
#include "engine/tiles/spoiled.h"

namespace fovea::engine {
namespace {

// Positions listed in an int32 [n] view, each below `limit`; all of them where there is no view.
Vector<size_t> positions(const View& view, size_t limit, const ArgumentName& name) {
  Vector<size_t> all;
  if (!view) {
    for (size_t i = 0; i < limit; ++i) all.push_back(i);
    return all;
  }
  check_rank(view, name, 1);
  check_dtype(view, name, DType::kInt32);
  for (int64_t i = 0; i < view.size[0]; ++i) {
    const int64_t at = element<int32_t>(view, i);
    FOVEA_CHECK(at >= 0 && at < static_cast<int64_t>(limit),
                name + "[" + std::to_string(i) + "]: " + std::to_string(at) +
                    ", expected between 0 and " + std::to_string(limit) + " (not included)");
    all.push_back(static_cast<size_t>(at));
  }
  return all;
}

void check_shape(const View& view, const ArgumentName& name, DType dtype, Vector<size_t> shape) {
  check_dtype(view, name, dtype);
  check_rank(view, name, static_cast<int>(shape.size()));
  for (size_t d = 0; d < shape.size(); ++d) {
    check_size(view, name, static_cast<int>(d), static_cast<int64_t>(shape[d]), "the selection's");
  }
}

}  // namespace

template <class T>
SelectionWriter<T>::SelectionWriter(const Geometry& g, const Selection& selection,
                                    const SelectedWeights& out)
    : g_(g),
      selection_(selection),
      out_(out),
      heads_(positions(selection.heads, g.heads, "heads")) {
  const auto rows = positions(selection.rows, g.max_queries, "rows");
  rows_ = rows.size();
  for (size_t i = 0; i < rows.size();) {
    size_t n = 1;
    while (i + n < rows.size() && n < kMaxQueries && rows[i + n] == rows[i] + n) ++n;
    runs_.push_back({i, rows[i], n});
    i += n;
  }
  FOVEA_CHECK(selection.top_k >= 0,
              "top_k: " + std::to_string(selection.top_k) + ", expected at least 0");
  FOVEA_CHECK(!selection.column_sums || selection.top_k == 0,
              "top_k: " + std::to_string(selection.top_k) + ", expected 0 with column_sums");
  const size_t k = static_cast<size_t>(selection.top_k);
  if (selection.column_sums) {
    check_shape(out.weights, "weights", dtype_of<T>(), {g.batches, heads_.size(), g.max_keys});
  } else if (k > 0) {
    check_shape(out.weights, "weights", dtype_of<T>(), {g.batches, heads_.size(), rows_, k});
    check_shape(out.indices, "indices", DType::kInt32, {g.batches, heads_.size(), rows_, k});
    check_rows(out.indices, "indices");
  } else if (g.graph && out.weights.rank == 2) {
    FOVEA_CHECK(!selection.rows, "rows: given, expected none with a weight for each edge");
    check_shape(out.weights, "weights", dtype_of<T>(),
                {static_cast<size_t>(g.graph->columns.size[0]), heads_.size()});
    return;
  } else {
    check_shape(out.weights, "weights", dtype_of<T>(),
                {g.batches, heads_.size(), rows_, g.max_keys});
  }
  check_rows(out.weights, "weights");
}

template <class T>
void SelectionWriter<T>::clear(size_t batch, size_t slot) const {
  const auto b = static_cast<int64_t>(batch), s = static_cast<int64_t>(slot);
  const View& w = out_.weights;
  if (w.rank == 2) return;
  if (sums()) return static_cast<void>(std::fill_n(&element<T>(w, b, s), w.size[2], T(0)));
  for (int64_t r = 0; r < w.size[2]; ++r) {
    std::fill_n(&element<T>(w, b, s, r), w.size[3], T(0));
    if (selection_.top_k)
      std::fill_n(&element<int32_t>(out_.indices, b, s, r), selection_.top_k, -1);
  }
}

template <class T>
void SelectionWriter<T>::put(const Tile<T>& tile, size_t r, size_t slot, size_t row_slot,
                             size_t edge) const {
  const T* weights = tile.s + r * tile.s_stride;
  const auto b = static_cast<int64_t>(tile.batch), h = static_cast<int64_t>(slot),
             row = static_cast<int64_t>(row_slot);
  const auto finite = [](T w) { return w == -std::numeric_limits<T>::infinity() ? T(0) : w; };
  if (selection_.top_k > 0) {
    T* best = &element<T>(out_.weights, b, h, row);
    int32_t* index = &element<int32_t>(out_.indices, b, h, row);
    return is_spoiled(tile.stats + r * kStatistics) ? put_spoiled(tile, weights, best, index)
                                                    : put_largest(tile, weights, best, index);
  }
  if (out_.weights.rank == 2) {
    for (size_t c = 0; c < tile.nk; ++c)
      element<T>(out_.weights, static_cast<int64_t>(edge + c), h) = finite(weights[c]);
    return;
  }
  // Edges may name a key twice: add.
  T* out = sums() ? &element<T>(out_.weights, b, h) : &element<T>(out_.weights, b, h, row);
  for (size_t c = 0; c < tile.nk; ++c) out[tile.key_at(c)] += finite(weights[c]);
}

// A sorted list of the largest so far; most weights fail against its last.
template <class T>
void SelectionWriter<T>::put_largest(const Tile<T>& tile, const T* weights, T* best,
                                     int32_t* index) const {
  const auto k = static_cast<size_t>(selection_.top_k);
  const auto find = row_loops<T>().find_above;
  const auto last = [&] {
    return index[k - 1] < 0 ? -std::numeric_limits<T>::infinity() : best[k - 1];
  };
  for (size_t c = find(weights, 0, tile.nk, last()); c < tile.nk;
       c = find(weights, c + 1, tile.nk, last())) {
    size_t at = k - 1;  // equal weights keep the lower index in front
    for (; at > 0 && (index[at - 1] < 0 || best[at - 1] < weights[c]); --at) {
      best[at] = best[at - 1];
      index[at] = index[at - 1];
    }
    best[at] = weights[c];
    index[at] = static_cast<int32_t>(tile.key_at(c));
  }
}

// Weights that are all NaN have no order: the first keys seen stand for the largest.
template <class T>
void SelectionWriter<T>::put_spoiled(const Tile<T>& tile, const T* weights, T* best,
                                     int32_t* index) const {
  const auto k = static_cast<size_t>(selection_.top_k);
  size_t at = static_cast<size_t>(std::find(index, index + k, -1) - index);
  for (size_t c = 0; c < tile.nk && at < k; ++c) {
    if (!std::isnan(weights[c])) continue;
    best[at] = weights[c];
    index[at++] = static_cast<int32_t>(tile.key_at(c));
  }
}

template class SelectionWriter<float>;
template class SelectionWriter<double>;

}  // namespace fovea::engine
