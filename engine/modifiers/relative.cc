// Relative positions (Shaw et al. 2018), on a dot score: with c = clip(j - i, -K, K),
//
//   e'_ij = e_ij + scale q_i.rK_c,     o_i = sum_j a_ij (v_j + rV_c).
//
// There are 2K + 1 table rows, so the products of a query with them are computed once (begin_rows),
// and weights and gradients of one offset are summed before they are multiplied by a table row. This
// costs O(L K E), beside the O(L S E) of the attention itself.
#include <algorithm>
#include <cmath>

#include "engine/call/facts.h"
#include "engine/call/parameter.h"
#include "engine/registry.h"

namespace fovea::engine {
namespace {

template <class T>
class RelativeStage final : public ModifierStage<T> {
 public:
  RelativeStage(const StageContext& context, size_t index)
      : query_width_(context.geometry.query_width), value_width_(context.geometry.value_width) {
    const auto& choice = std::get<Relative>(context.problem.score.modifiers[index]);
    clip_ = choice.clip;
    key_table_ = Parameter<T>(choice.key_table, 2);
    value_table_ = Parameter<T>(choice.value_table, 2);
    scale_ = static_cast<T>(
        dot_scale(std::get<Dot>(context.problem.score.kind), static_cast<int64_t>(query_width_)));
    if (!context.gradients) return;
    const auto& wanted = std::get<Relative>(context.gradients->score.modifiers[index]);
    key_table_.set_gradient(wanted.key_table);
    value_table_.set_gradient(wanted.value_table);
  }

  // A query row's scratch: its products with the key table, those of its output gradient with the
  // value table (backward), and sums of what meets each offset.
  size_t row_scratch() const override { return 3 * offsets(); }

  void begin_rows(Tile<T>& tile, T* scratch) const override {
    for (size_t r = 0; r < tile.nq; ++r) {
      T* row = scratch + r * row_scratch();
      if (key_table_)
        multiply(tile.q + r * tile.q_stride, key_table_.of(0), query_width_, scale_, row);
      if (value_table_ && tile.g)
        multiply(tile.g + r * tile.g_stride, value_table_.of(0), value_width_, T(1),
                 row + offsets());
      std::fill_n(sums(row), offsets(), T(0));
    }
  }
  void apply(Tile<T>& tile, const T* scratch, T*) const override {
    if (key_table_)
      for_rows(
          tile, scratch, [&](T* s, size_t offset, const T* row) { *s += row[offset]; }, tile.s);
  }
  void after_weights(Tile<T>& tile, T* scratch) const override {
    if (!value_table_) return;
    for (size_t r = 0; r < tile.nq; ++r) {
      T* sum = sums(scratch + r * row_scratch());
      if (!tile.first)
        for (size_t o = 0; o < offsets(); ++o) sum[o] *= tile.rows.carry[r];
    }
    for_rows(
        tile, scratch, [&](const T* a, size_t offset, T* row) { sums(row)[offset] += *a; }, tile.s);
  }
  void finish_rows(Tile<T>& tile, T* scratch) const override {
    if (!value_table_) return;
    for (size_t r = 0; r < tile.nq; ++r) {
      if (tile.rows.carry[r] == 0) continue;
      combine(sums(scratch + r * row_scratch()), value_table_.of(0), value_width_,
              tile.rows.carry[r], tile.o + r * tile.o_stride);
    }
  }

  // dA_ij gains g_i.rV_c; drV_c = sum a_ij g_i.
  void backward_weights(Tile<T>& tile, T* scratch, T* partial) const override {
    if (!value_table_) return;
    for_rows(
        tile, scratch, [&](T* da, size_t offset, const T* row) { *da += row[offsets() + offset]; },
        tile.ds);
    if (!partial || !value_table_.wants_gradient()) return;
    clear_sums(tile, scratch);
    for_rows(
        tile, scratch, [&](const T* a, size_t offset, T* row) { sums(row)[offset] += *a; }, tile.s);
    outer(tile, scratch, tile.g, tile.g_stride, value_width_, T(1), partial + key_gradient_size());
  }
  // drK_c = scale sum de_ij q_i; dq_i gains scale sum_c de_c rK_c.
  void backward(Tile<T>& tile, T* scratch, const T*, T* partial) const override {
    if (!key_table_) return;
    clear_sums(tile, scratch);
    for_rows(
        tile, scratch, [&](const T* ds, size_t offset, T* row) { sums(row)[offset] += *ds; },
        tile.ds);
    if (partial && key_table_.wants_gradient())
      outer(tile, scratch, tile.q, tile.q_stride, query_width_, scale_, partial);
  }
  void backward_query(Tile<T>& tile, T* scratch) const override {
    if (!key_table_) return;
    for (size_t r = 0; r < tile.nq; ++r)
      combine(sums(scratch + r * row_scratch()), key_table_.of(0), query_width_, scale_,
              tile.dq + r * tile.dq_stride);
  }

  size_t partial_size() const override {
    return key_gradient_size() + (value_table_.wants_gradient() ? value_table_.size() : 0);
  }
  void store_parameters(size_t, size_t, const T* partial) const override {
    if (key_table_.wants_gradient()) key_table_.add_to_gradient(0, partial);
    if (value_table_.wants_gradient())
      value_table_.add_to_gradient(0, partial + key_gradient_size());
  }

 private:
  // Without a table there is nothing to keep for an offset, and nothing bounds the clip.
  size_t offsets() const {
    return key_table_ || value_table_ ? 2 * static_cast<size_t>(clip_) + 1 : 0;
  }
  size_t key_gradient_size() const { return key_table_.wants_gradient() ? key_table_.size() : 0; }
  template <class U>
  U* sums(U* row) const {
    return row + 2 * offsets();
  }
  void clear_sums(const Tile<T>& tile, T* scratch) const {
    for (size_t r = 0; r < tile.nq; ++r)
      std::fill_n(sums(scratch + r * row_scratch()), offsets(), T(0));
  }

  // visit(&cells[r][c], offset, scratch row) for every pair in a row's range; a masked one has
  // weight and gradient 0.
  template <class Scratch, class Visit>
  void for_rows(const Tile<T>& tile, Scratch* scratch, const Visit& visit, T* cells) const {
    for (size_t r = 0; r < tile.nq; ++r) {
      const int64_t i = tile.position_at(r);
      for (size_t c = tile.row_begin(r); c < tile.row_end(r); ++c) {
        const int64_t j = tile.key_index ? tile.key_index[c] : static_cast<int64_t>(tile.k0 + c);
        const auto offset = static_cast<size_t>(std::clamp(j - i, -clip_, clip_) + clip_);
        visit(cells + r * tile.s_stride + c, offset, scratch + r * row_scratch());
      }
    }
  }

  // out[o] = scale x.table[o]
  void multiply(const T* x, const T* table, size_t width, T scale, T* out) const {
    for (size_t o = 0; o < offsets(); ++o) {
      T sum = 0;
      for (size_t e = 0; e < width; ++e) sum += x[e] * table[o * width + e];
      out[o] = scale * sum;
    }
  }
  // out += scale sum_o w[o] table[o]
  void combine(const T* w, const T* table, size_t width, T scale, T* out) const {
    for (size_t o = 0; o < offsets(); ++o) {
      if (w[o] == 0) continue;
      const T factor = scale * w[o];
      for (size_t e = 0; e < width; ++e) out[e] += factor * table[o * width + e];
    }
  }
  // partial[o] += scale sum_r sums[r][o] x[r]
  void outer(const Tile<T>& tile, const T* scratch, const T* x, size_t x_stride, size_t width,
             T scale, T* partial) const {
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* w = sums(scratch + r * row_scratch());
      for (size_t o = 0; o < offsets(); ++o) {
        if (w[o] == 0) continue;
        const T factor = scale * w[o];
        for (size_t e = 0; e < width; ++e) partial[o * width + e] += factor * x[r * x_stride + e];
      }
    }
  }

  const size_t query_width_, value_width_;
  int64_t clip_ = 0;
  T scale_ = 1;
  Parameter<T> key_table_, value_table_;
};

}  // namespace

template <class T>
ModifierPointer<T> make_relative(const StageContext& context, size_t index) {
  return std::make_unique<RelativeStage<T>>(context, index);
}
template ModifierPointer<float> make_relative<float>(const StageContext&, size_t);
template ModifierPointer<double> make_relative<double>(const StageContext&, size_t);

}  // namespace fovea::engine
