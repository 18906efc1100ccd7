// Rows of a few residues modulo the stride, gathered: keys in panels, values and queries one after
// another.
#pragma once

#include <algorithm>

#include "engine/tiles/pass.h"

namespace fovea::engine {

// Member a of a residue is the position residue + a * stride.
template <class T>
class ResidueRows : public InScratch {
 public:
  // Residues are taken a few at a time: their rows lie side by side, so each page that is touched
  // serves all of them.
  static constexpr size_t kTogether = 4;

  ResidueRows(const Pass<T>& pass, size_t stride, Layout& layout)
      : pass_(pass),
        g_(pass.geometry),
        stride_(stride),
        most_(g_.max_keys / stride + 1 + kPanelKeys),
        panel_(pass.stages.score->panel_size()),
        panels_(layout.take<T>(kTogether * (most_ / kPanelKeys) * panel_)),
        k_(layout.take<T>(kTogether * kPanelKeys * g_.key_width)),
        v_(layout.take<T>(kTogether * most_ * g_.value_width)),
        q_(layout.take<T>(kTogether * kMaxQueries * g_.query_width)) {}

  // Of residue + t, since the last gather: its queries; its keys from member b on, and their values.
  const T* queries(size_t t) const { return q_ + t * kMaxQueries * g_.query_width; }
  const T* keys(size_t t, size_t b) const {
    return panels_ + (t * (most_ / kPanelKeys) + b / kPanelKeys) * panel_;
  }
  const T* values(size_t t, size_t b) const { return v_ + (t * most_ + b) * g_.value_width; }
  bool finite(size_t t) const { return finite_[t]; }  // its values
  size_t most() const { return most_; }               // members of a residue, in whole panels

  // The first `keys` members of each of `n` residues (some may have one less), panel by panel.
  void gather_keys(size_t batch, size_t key_head, size_t residue, size_t n, size_t keys) {
    const Problem& p = pass_.problem;
    const Rows k = g_.key_rows(p.key, batch, key_head), v = g_.key_rows(p.value, batch, key_head);
    const size_t limit = g_.key_limit[batch];
    std::fill_n(finite_, n, true);
    for (size_t b0 = 0; b0 < keys; b0 += kPanelKeys) {
      const size_t some = std::min(kPanelKeys, keys - b0);
      for (size_t c = 0; c < some; ++c) {
        for (size_t t = 0, j = residue + (b0 + c) * stride_; t < n && j < limit; ++t, ++j) {
          load_rows(p.key.dtype, k, j, 1, g_.key_width, k_ + (t * kPanelKeys + c) * g_.key_width,
                    g_.key_width);
          load_rows(p.value.dtype, v, j, 1, g_.value_width,
                    v_ + (t * most_ + b0 + c) * g_.value_width, g_.value_width);
        }
      }
      for (size_t t = 0; t < n; ++t) {
        const size_t last = residue + t + (b0 + some - 1) * stride_,
                     there = last < limit ? some : some - 1;
        pass_.stages.score->pack_keys(
            k_ + t * kPanelKeys * g_.key_width, g_.key_width, there,
            panels_ + (t * (most_ / kPanelKeys) + b0 / kPanelKeys) * panel_);
        const T* rows = v_ + (t * most_ + b0) * g_.value_width;
        finite_[t] =
            finite_[t] && row_loops<T>().finite(rows, g_.value_width, there, g_.value_width);
      }
    }
  }

  // Members [a0, a0 + rows) of the queries.
  void gather_queries(size_t batch, size_t head, size_t residue, size_t n, size_t a0, size_t rows) {
    const Problem& p = pass_.problem;
    const Rows q = g_.query_rows(p.query, batch, head);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t t = 0, i = residue + (a0 + r) * stride_; t < n && i < g_.query_count[batch];
           ++t, ++i) {
        load_rows(p.query.dtype, q, i, 1, g_.query_width,
                  q_ + (t * kMaxQueries + r) * g_.query_width, g_.query_width);
      }
    }
  }

 private:
  const Pass<T>& pass_;
  const Geometry& g_;
  const size_t stride_, most_, panel_;
  T *panels_, *k_, *v_, *q_;
  bool finite_[kTogether];
};

}  // namespace fovea::engine
