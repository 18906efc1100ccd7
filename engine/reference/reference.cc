#include "engine/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>

#include "engine/reference/dropout.h"
#include "engine/reference/modifier.h"
#include "engine/reference/normaliser.h"
#include "engine/reference/score.h"
#include "engine/reference/structure.h"

namespace fovea::reference {
namespace {

// Rows of a batched [B, H, L, E] or packed (total, H, E) array.
struct Layout {
  bool packed;
  int64_t heads, length;
  Layout(const engine::View& view, bool packed)
      : packed(packed), heads(view.size[1]), length(packed ? view.size[0] : view.size[2]) {}
  int64_t row(int64_t batch, int64_t head, int64_t first, int64_t position) const {
    return packed ? (first + position) * heads + head : (batch * heads + head) * length + position;
  }
};

template <class T>
class Attention {
 public:
  explicit Attention(const engine::Problem& problem)
      : problem_(problem),
        structure_(problem),
        face_(face_of(problem)),
        score_(make_score<T>(problem, face_)),
        modifiers_(make_modifiers<T>(problem)),
        normaliser_(make_normaliser<T>(problem, face_)),
        query_(problem.query),
        key_(problem.key),
        value_(problem.value),
        query_layout_(problem.query, structure_.packed()),
        key_layout_(problem.key, structure_.packed()),
        key_heads_(problem.key.size[structure_.paged() ? 2 : 1]) {}

  Forward<T> forward() {
    Forward<T> result;
    result.output = query_;
    result.output.size[query_.rank - 1] = value_width();
    result.output.data.assign(result.output.count(), T(0));
    if (normaliser_->has_lse()) result.lse.assign(rows(), T(0));
    each_row([&](const Sequence& sequence, Work& work) {
      if (normaliser_->empty(work.row)) ++result.empty_rows;
      T* o = result.output.row(work.query_row);
      for (size_t n = 0; n < work.keys.size(); ++n) {
        const T a = work.row.a[n] * dropout(sequence, work, n);
        const T* offset = value_offset(work.pairs[n]);
        const T* v = value_.row(work.key_rows[n]);
        if (a == 0) continue;
        for (int64_t c = 0; c < value_width(); ++c) o[c] += a * (v[c] + (offset ? offset[c] : 0));
      }
      if (normaliser_->has_lse()) result.lse[work.query_row] = work.row.lse;
      result.rows.push_back({sequence.batch, work.head, work.i, work.keys, work.row.e, work.row.a});
    });
    return result;
  }

  Backward<T> backward(const engine::View& d_output_view, const engine::View& d_lse_view) {
    const Tensor<T> d_output(d_output_view), d_lse(d_lse_view);
    Backward<T> result;
    result.query = Tensor<T>::zeros_like(query_);
    result.key = Tensor<T>::zeros_like(key_);
    result.value = Tensor<T>::zeros_like(value_);
    each_row([&](const Sequence& sequence, Work& work) {
      const T* d_o = d_output.row(work.query_row);
      work.row.d_lse = d_lse ? d_lse.data[work.query_row] : T(0);
      for (size_t n = 0; n < work.keys.size(); ++n) {
        Pair<T>& pair = work.pairs[n];
        pair.dq = result.query.row(work.query_row);
        pair.dk = result.key.row(work.key_rows[n]);
        const T factor = dropout(sequence, work, n);
        const T* v = value_.row(work.key_rows[n]);
        T* dv = result.value.row(work.key_rows[n]);
        const T* offset = value_offset(pair);
        T* d_offset = value_offset_gradient(pair);
        T da = 0;
        for (int64_t c = 0; c < value_width(); ++c) {
          da += d_o[c] * (v[c] + (offset ? offset[c] : 0));
          if (factor == 0) continue;  // dropped, whatever the weight
          dv[c] += factor * work.row.a[n] * d_o[c];
          if (d_offset) d_offset[c] += factor * work.row.a[n] * d_o[c];
        }
        work.row.da.push_back(factor * da);
      }
      if (work.spoiled)
        spoil_gradients(work.row);
      else
        normaliser_->backward(work.row);
      for (size_t n = 0; n < work.keys.size(); ++n) {
        T de = work.row.de[n];
        for (size_t m = modifiers_.size(); m-- > 0;) {
          de = modifiers_[m]->backward(work.pairs[n], work.steps[n][m], de);
        }
        score_->backward(work.pairs[n], de);
      }
    });
    result.score = score_->parameters().gradient;
    result.normaliser = normaliser_->parameters().gradient;
    for (const auto& modifier : modifiers_) {
      result.modifiers.push_back(modifier->parameters().gradient);
    }
    return result;
  }

 private:
  struct Work {
    int64_t head, i, query_row;
    std::vector<int64_t> keys, key_rows;
    std::vector<Pair<T>> pairs;
    std::vector<std::vector<T>> steps;  // of each pair: the score before each modifier
    Row<T> row;
    bool spoiled = false;  // sees a score that is no number
  };

  int64_t value_width() const { return value_.size[value_.rank - 1]; }
  int64_t rows() const {
    return std::accumulate(query_.size.begin(), query_.size.begin() + query_.rank - 1, int64_t(1),
                           std::multiplies<>());
  }

  T dropout(const Sequence& sequence, const Work& work, size_t n) const {
    if (problem_.dropout_p == 0) return 1;
    return static_cast<T>(dropout_factor(
        problem_, {sequence.batch, work.head, work.i + sequence.query_offset, work.keys[n]}));
  }
  const T* value_offset(const Pair<T>& pair) const {
    for (const auto& modifier : modifiers_) {
      if (const T* offset = modifier->value_offset(pair)) return offset;
    }
    return nullptr;
  }
  T* value_offset_gradient(const Pair<T>& pair) {
    for (const auto& modifier : modifiers_) {
      if (T* offset = modifier->value_offset_gradient(pair)) return offset;
    }
    return nullptr;
  }

  template <class Visit>
  void each_row(Visit visit) {
    const int64_t group = query_layout_.heads / std::max<int64_t>(1, key_heads_);
    for (const Sequence& sequence : structure_.sequences()) {
      for (int64_t head = 0; head < query_layout_.heads; ++head) {
        for (int64_t i = 0; i < sequence.queries; ++i) {
          Work work;
          work.head = head;
          work.i = i;
          work.query_row = query_layout_.row(sequence.batch, head, sequence.first_query, i);
          work.row.head = head;
          const int64_t position = i + sequence.query_offset;
          work.row.uniform =
              static_cast<T>(sample_uniform(problem_, {sequence.batch, head, position, 0}));
          const auto edges = structure_.edges(sequence, head, i);
          size_t met = 0;
          for (int64_t j : structure_.keys(sequence, head, i)) {
            const int64_t key_row =
                structure_.paged()
                    ? structure_.row_in_pool(sequence, j) * key_heads_ + head / group
                    : key_layout_.row(sequence.batch, head / group, sequence.first_key, j);
            add_pair(work,
                     {.batch = sequence.batch,
                      .head = head,
                      .row = i,
                      .i = position,
                      .j = j,
                      .q = query_.row(work.query_row),
                      .k = key_.row(key_row),
                      .edge = edges.empty() ? -1 : edges[met++]},
                     key_row);
          }
          work.spoiled = normaliser_->looks() && std::any_of(work.row.e.begin(), work.row.e.end(),
                                                             [](T e) { return !std::isfinite(e); });
          if (work.spoiled) {
            work.row.a.assign(work.row.e.size(), kNaN);
            work.row.lse = kNaN;
          } else {
            normaliser_->forward(work.row);
          }
          visit(sequence, work);
        }
      }
    }
  }

  // Gradients of a row without numbers, and of what the normaliser owns for its head.
  void spoil_gradients(Row<T>& row) {
    row.de.assign(row.e.size(), kNaN);
    for (Tensor<T>& gradient : normaliser_->parameters().gradient) {
      if (gradient) gradient.data[gradient.broadcast(0, 0, 0, row.head)] = kNaN;
    }
  }

  // A key whose score is -infinity is a masked key.
  void add_pair(Work& work, const Pair<T>& pair, int64_t key_row) const {
    constexpr T minus_infinity = -std::numeric_limits<T>::infinity();
    T e = score_->value(pair);
    if (face_ == Face::kLog && e == minus_infinity) return;
    std::vector<T> steps;
    for (const auto& modifier : modifiers_) {
      steps.push_back(e);
      e = modifier->value(pair, e);
    }
    if (face_ == Face::kLog && e == minus_infinity) return;
    work.keys.push_back(pair.j);
    work.key_rows.push_back(key_row);
    work.pairs.push_back(pair);
    work.steps.push_back(std::move(steps));
    work.row.e.push_back(e);
  }

  static constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

  engine::Problem problem_;
  Structure structure_;
  Face face_;
  std::unique_ptr<Score<T>> score_;
  std::vector<std::unique_ptr<Modifier<T>>> modifiers_;
  std::unique_ptr<Normaliser<T>> normaliser_;
  Tensor<T> query_, key_, value_;
  Layout query_layout_, key_layout_;
  int64_t key_heads_;
};

}  // namespace

template <class T>
Forward<T> forward(const engine::Problem& problem) {
  return Attention<T>(problem).forward();
}

template <class T>
Backward<T> backward(const engine::Problem& problem, const engine::View& d_output,
                     const engine::View& d_lse) {
  return Attention<T>(problem).backward(d_output, d_lse);
}

template Forward<float> forward<float>(const engine::Problem&);
template Forward<double> forward<double>(const engine::Problem&);
template Forward<long double> forward<long double>(const engine::Problem&);
template Backward<float> backward<float>(const engine::Problem&, const engine::View&,
                                         const engine::View&);
template Backward<double> backward<double>(const engine::Problem&, const engine::View&,
                                           const engine::View&);
template Backward<long double> backward<long double>(const engine::Problem&, const engine::View&,
                                                     const engine::View&);

}  // namespace fovea::reference
