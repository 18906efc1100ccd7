// Backward of a strided structure as two problems whose pairs together are its pairs: the band of
// the last `stride` keys, and, with positions sorted by residue, causal attention within each
// residue. Given the rows' statistics, a gradient is a sum over pairs, so the two add up.
#include <type_traits>
#include <variant>

#include "engine/paths/strided.h"
#include "engine/tiles/backward.h"
#include "engine/call/view.h"
#include "engine/runtime/scratch.h"

namespace fovea::engine {
namespace {

// Rows of `view` ([B, H, n, width]; width 1 for [B, H, n]) in another order, in the arithmetic
// type.
template <class T>
class Sorted {
 public:
  Sorted() = default;
  Sorted(const View& view, size_t width, const Vector<size_t>& order)
      : order_(&order),
        batches_(static_cast<size_t>(view.size[0])),
        heads_(static_cast<size_t>(view.size[1])),
        width_(width),
        rank_(view.rank),
        array_(batches_ * heads_ * order.size() * width) {}

  View view() const {
    View v = View::of(array_.data(), dtype_of<T>(),
                      {static_cast<int64_t>(batches_), static_cast<int64_t>(heads_),
                       static_cast<int64_t>(order_->size()), static_cast<int64_t>(width_)});
    v.rank = rank_;
    return v;
  }
  void load(const View& from) {
    each(from, [](T& sorted, T& plain) { sorted = plain; });
  }
  void add_to(const View& to) {
    each(to, [](T& sorted, T& plain) { plain += sorted; });
  }

 private:
  template <class Body>
  void each(const View& view, const Body& body) {
    T* at = array_.data();
    for (size_t b = 0; b < batches_; ++b) {
      for (size_t h = 0; h < heads_; ++h) {
        for (const size_t i : *order_) {
          T* row = &element<T>(view, static_cast<int64_t>(b), static_cast<int64_t>(h),
                               static_cast<int64_t>(i), 0);
          const int64_t step = rank_ == 4 ? view.stride[3] : 1;
          for (size_t e = 0; e < width_; ++e) body(*at++, row[static_cast<int64_t>(e) * step]);
        }
      }
    }
  }
  const Vector<size_t>* order_ = nullptr;
  size_t batches_ = 0, heads_ = 0, width_ = 0;
  int rank_ = 0;
  ScratchArray<T> array_;
};

}  // namespace

template <class T>
void strided_backward(const Problem& problem, const Geometry& g, const Result& saved,
                      const Gradients& gradients, const Parallel& parallel) {
  const size_t n = g.max_queries,
               stride = static_cast<size_t>(std::get<Strided>(problem.structure.all_of[0]).stride);
  Problem band = problem;
  band.structure.all_of = {Window{static_cast<int64_t>(stride) - 1, 0}};
  tiles_backward<T>(band, resolve(band), saved, gradients, parallel);

  // Query a of a residue sees its keys b < a. With query b + 1 at the position of key b, that is a
  // causal structure.
  Vector<size_t> keys, queries;
  Vector<int32_t> residue;
  for (size_t r = 0; r < stride; ++r) {
    for (size_t j = r; j + stride < n; j += stride) {
      keys.push_back(j);
      queries.push_back(j + stride);
      residue.push_back(static_cast<int32_t>(r));
    }
  }
  if (keys.empty()) return;
  const size_t e = g.query_width, ev = g.value_width;
  Sorted<T> q(problem.query, e, queries), k(problem.key, e, keys), v(problem.value, ev, keys),
      o(saved.output, ev, queries);
  Sorted<T> stats(saved.statistics, kStatistics, queries), d_o(gradients.output, ev, queries),
      d_lse;
  q.load(problem.query);
  k.load(problem.key);
  v.load(problem.value);
  o.load(saved.output);
  stats.load(saved.statistics);
  d_o.load(gradients.output);
  Problem sorted = problem;
  sorted.query = q.view();
  sorted.key = k.view();
  sorted.value = v.view();
  const View ids = View::of(residue.data(), DType::kInt32, {static_cast<int64_t>(residue.size())});
  sorted.structure.all_of = {Causal{}, Documents{ids, ids}};
  Result sorted_saved;
  sorted_saved.output = o.view();
  sorted_saved.statistics = stats.view();
  Gradients wanted;
  wanted.score = problem.score;
  wanted.normaliser = problem.normaliser;  // whose own gradient comes with the band
  std::visit(
      [](auto& kind) {
        kind.fields([]<class Field>(const char*, Field& field) {
          if constexpr (std::is_same_v<Field, View>) field = {};
        });
      },
      wanted.normaliser);
  wanted.output = d_o.view();
  if (gradients.lse) {
    d_lse = Sorted<T>(gradients.lse, 1, queries);
    d_lse.load(gradients.lse);
    wanted.lse = d_lse.view();
  }
  Sorted<T> dq, dk, dv;
  const auto want = [&](const View& whole, size_t width, const Vector<size_t>& order,
                        Sorted<T>* part, View* place) {
    if (!whole) return;
    *part = Sorted<T>(whole, width, order);
    *place = part->view();
  };
  want(gradients.query, e, queries, &dq, &wanted.query);
  want(gradients.key, e, keys, &dk, &wanted.key);
  want(gradients.value, ev, keys, &dv, &wanted.value);
  tiles_backward<T>(sorted, resolve(sorted), sorted_saved, wanted, parallel);
  if (gradients.query) dq.add_to(gradients.query);
  if (gradients.key) dk.add_to(gradients.key);
  if (gradients.value) dv.add_to(gradients.value);
}
template void strided_backward<float>(const Problem&, const Geometry&, const Result&,
                                      const Gradients&, const Parallel&);
template void strided_backward<double>(const Problem&, const Geometry&, const Result&,
                                       const Gradients&, const Parallel&);

}  // namespace fovea::engine
