// Gradients of the queries and keys of a tile of additive scores, one vector of features at a time.
// additive.cc has the equations.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/scores/additive_backward.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>

#include "engine/scores/additive-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace additive {

// What one vector of features of four queries receives from all keys, and gives to them.
template <class D>
struct Strip {
  using T = hn::TFromD<D>;
  const T* u;  // four query rows
  size_t u_stride;
  const T* v;  // key rows
  size_t v_stride;
  const T* de;  // four rows of gradients
  size_t de_stride;
  size_t begin, end;
  T* dq;  // [4][lanes], stored
  T* dk;  // [keys][lanes], added
};

template <class D, class Activation, size_t kQueries, bool kFinite>
HWY_INLINE void backward_strip(D d, const Activation& f, const Strip<D>& m,
                               hn::Vec<D>* weight_sum) {
  using V = hn::Vec<D>;
  constexpr size_t N = hn::MaxLanes(D());
  V u[4], dq[4], p = hn::Zero(d);
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    u[i] = hn::LoadU(d, m.u + (i < kQueries ? i : 0) * m.u_stride);
    dq[i] = hn::Zero(d);
  }
  for (size_t j = m.begin; j < m.end; ++j) {
    const V v = hn::LoadU(d, m.v + j * m.v_stride);
    V r[4];
    f.two_values(d, u[0], u[1], v, r);
    if constexpr (kQueries > 2) f.two_values(d, u[2], u[3], v, r + 2);
    V dk = hn::Load(d, m.dk + j * N);
#pragma GCC unroll 4
    for (size_t i = 0; i < kQueries; ++i) {
      // A pair that does not count has de = 0 and may have any operands.
      if constexpr (!kFinite) r[i] = hn::IfThenElseZero(hn::IsFinite(r[i]), r[i]);
      V g, h;
      f.gradients(d, r[i], hn::Set(d, m.de[i * m.de_stride + j]), &g, &h);
      dq[i] = hn::Add(dq[i], g);
      dk = hn::Add(dk, g);
      p = hn::Add(p, h);
    }
    hn::Store(dk, d, m.dk + j * N);
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < kQueries; ++i) hn::Store(dq[i], d, m.dq + i * N);
  *weight_sum = hn::Add(*weight_sum, p);
}

// Four rows at a time, then two, then one; one where rows differ in class, or where NaN must not
// pass from one row to another through a shared division.
template <class T>
size_t strip_rows(const Tile<T>& tile, size_t i, bool alone) {
  const size_t left = tile.nq - i;
  return alone ? 1 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

template <class T, class Activation, class D = hn::ScalableTag<T>>
void run_strip(const Form<T>& form, const Tile<T>& tile, Activation& f, Strip<D> strip, size_t rows,
               size_t i, hn::Vec<D>* weight_sum) {
  const D d;
  if constexpr (std::is_same_v<Activation, Tanh<D, kRaw>>) {
    // Key rows may differ in class: runs of one class.
    f.query_is_raw = tile.q[i * tile.q_stride + form.padded] == kRaw;
    const size_t end = strip.end;
    auto total = hn::Zero(d);
    auto sum_dq = hn::Zero(d);
    for (size_t j = strip.begin; j < end; ++j) {
      f.key_is_raw = tile.k[j * tile.k_stride + form.padded] == kRaw;
      strip.begin = j;
      strip.end = j + 1;
      backward_strip<D, Activation, 1, false>(d, f, strip, &total);
      sum_dq = hn::Add(sum_dq, hn::Load(d, strip.dq));
    }
    hn::Store(sum_dq, d, strip.dq);
    *weight_sum = hn::Add(*weight_sum, total);
  } else if (!tile.finite) {
    backward_strip<D, Activation, 1, false>(d, f, strip, weight_sum);
  } else {
    if (rows == 4) return backward_strip<D, Activation, 4, true>(d, f, strip, weight_sum);
    if (rows == 2) return backward_strip<D, Activation, 2, true>(d, f, strip, weight_sum);
    backward_strip<D, Activation, 1, true>(d, f, strip, weight_sum);
  }
}

template <class T>
void clear_masked(Tile<T>& tile) {
  for (size_t i = 0; i < tile.nq; ++i) {
    T* row = tile.ds + i * tile.s_stride;
    std::fill(row, row + std::min(tile.row_begin(i), tile.nk), T(0));
    std::fill(row + std::min(tile.row_end(i), tile.nk), row + tile.nk, T(0));
  }
}

template <class T>
void add_total(const Form<T>& form, const Tile<T>& tile, T* partial) {
  T total = 0;
  for (size_t i = 0; i < tile.nq; ++i)
    for (size_t j = tile.row_begin(i); j < tile.row_end(i); ++j)
      total += tile.ds[i * tile.s_stride + j];
  for (size_t e = 0; e < form.width; ++e) partial[e] += total;
}

template <class T, class Activation>
void backward_with(const Form<T>& form, Tile<T>& tile, bool first_query, bool first_key, T* partial,
                   Activation f) {
  using D = hn::ScalableTag<T>;
  constexpr size_t N = HWY_LANES(T);
  const D d;
  if (tile.masked) clear_masked(tile);
  HWY_ALIGN T dk[kMaxKeys * N];
  HWY_ALIGN T dq[4 * N];
  HWY_ALIGN T factor[N];
  for (size_t e = 0; e < form.padded; e += N) {
    std::fill_n(dk, tile.nk * N, T(0));
    auto weight_sum = hn::Zero(d);
    hn::Store(hn::Mul(hn::LoadU(d, form.weight + e), hn::Set(d, Activation::kInputFactor)), d,
              factor);
    for (size_t i = 0; i < tile.nq;) {
      const bool alone = !tile.finite || std::is_same_v<Activation, Tanh<D, kRaw>>;
      const size_t rows = strip_rows(tile, i, alone);
      Strip<D> strip{.u = tile.q + i * tile.q_stride + e,
                     .u_stride = tile.q_stride,
                     .v = tile.k + e,
                     .v_stride = tile.k_stride,
                     .de = tile.ds + i * tile.s_stride,
                     .de_stride = tile.s_stride,
                     .begin = tile.nk,
                     .end = 0,
                     .dq = dq,
                     .dk = dk};
      for (size_t r = i; r < i + rows; ++r) {
        strip.begin = std::min(strip.begin, tile.row_begin(r));
        strip.end = std::max(strip.end, tile.row_end(r));
      }
      run_strip(form, tile, f, strip, rows, i, &weight_sum);
      for (size_t r = 0; r < rows && tile.dq != nullptr; ++r) {
        T* out = tile.dq + (i + r) * tile.dq_stride + e;
        const auto x = hn::Mul(hn::Load(d, dq + r * N), hn::Load(d, factor));
        hn::StoreU(first_query ? x : hn::Add(hn::LoadU(d, out), x), d, out);
      }
      i += rows;
    }
    for (size_t j = 0; j < tile.nk && tile.dk != nullptr; ++j) {
      T* out = tile.dk + j * tile.dk_stride + e;
      const auto x = hn::Mul(hn::Load(d, dk + j * N), hn::Load(d, factor));
      hn::StoreU(first_key ? x : hn::Add(hn::LoadU(d, out), x), d, out);
    }
    if (partial != nullptr) {
      const auto x = hn::Mul(weight_sum, hn::Set(d, Activation::kScoreFactor));
      hn::StoreU(hn::Add(hn::LoadU(d, partial + e), x), d, partial + e);
    }
  }
  if (partial != nullptr && form.tanh) add_total(form, tile, partial);
}

template <class T>
void backward_tile(const Form<T>& form, Tile<T>& tile, bool first_query, bool first_key,
                   T* partial) {
  with_activation(form, tile, [&](auto f) HWY_ATTR {
    backward_with(form, tile, first_query, first_key, partial, f);
  });
}
template void backward_tile<float>(const Form<float>&, Tile<float>&, bool, bool, float*);
template void backward_tile<double>(const Form<double>&, Tile<double>&, bool, bool, double*);

}  // namespace additive
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();
