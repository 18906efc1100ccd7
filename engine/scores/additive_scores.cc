// Additive scores of a tile: one query with a few keys at a time. additive.cc has the equations.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/scores/additive_scores.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>

#include "engine/loops/prefetch.h"
#include "engine/scores/additive-inl.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace additive {

// kVectors vectors of features of one query, added to the scores of kKeys keys.
template <size_t kVectors, size_t kKeys, class D, class Activation>
HWY_INLINE void add_features(D d, const Activation& f, const hn::TFromD<D>* HWY_RESTRICT u,
                             const hn::TFromD<D>* HWY_RESTRICT v, size_t v_stride,
                             const hn::TFromD<D>* HWY_RESTRICT w, hn::Vec<D>* sum) {
  using V = hn::Vec<D>;
  constexpr size_t N = hn::MaxLanes(D());
  V query[kVectors], weight[kVectors];
#pragma GCC unroll 4
  for (size_t i = 0; i < kVectors; ++i) {
    query[i] = hn::LoadU(d, u + i * N);
    weight[i] = hn::LoadU(d, w + i * N);
  }
#pragma GCC unroll 8
  for (size_t j = 0; j < kKeys; ++j) {
    V key[kVectors];
#pragma GCC unroll 4
    for (size_t i = 0; i < kVectors; ++i) key[i] = hn::LoadU(d, v + j * v_stride + i * N);
    if constexpr (kVectors == 4)
      sum[j] = f.add_four(d, sum[j], query, key, weight);
    else if constexpr (kVectors == 2)
      sum[j] = f.add_two(d, sum[j], query, key, weight);
    else
      sum[j] = f.add_term(d, sum[j], query, key, weight);
  }
}

// scores[0 .. kKeys) of one query with kKeys key rows: base, and the terms with weights w.
template <class D, class Activation, size_t kKeys>
HWY_INLINE void score_keys(D d, const Activation& f, const hn::TFromD<D>* HWY_RESTRICT u,
                           const hn::TFromD<D>* HWY_RESTRICT v, size_t v_stride,
                           const hn::TFromD<D>* HWY_RESTRICT w, size_t padded, hn::TFromD<D> base,
                           hn::TFromD<D>* HWY_RESTRICT scores) {
  using T = hn::TFromD<D>;
  constexpr size_t N = hn::MaxLanes(D());
  constexpr size_t kSums = kKeys > 4 ? 8 : 4;
  hn::Vec<D> sum[kSums];
#pragma GCC unroll 8
  for (size_t j = 0; j < kSums; ++j) sum[j] = hn::Set(d, base / T(N));  // exact: N is a power of 2
  size_t e = 0;
  if constexpr (Activation::kShare >= 4) {
    for (; e + 4 * N <= padded; e += 4 * N)
      add_features<4, kKeys>(d, f, u + e, v + e, v_stride, w + e, sum);
  }
  if constexpr (Activation::kShare >= 2) {
    for (; e + 2 * N <= padded; e += 2 * N)
      add_features<2, kKeys>(d, f, u + e, v + e, v_stride, w + e, sum);
  }
  for (; e < padded; e += N) add_features<1, kKeys>(d, f, u + e, v + e, v_stride, w + e, sum);
  if constexpr (kKeys < 4) {
    T total[4];
    sum_four(d, sum, total);
    for (size_t j = 0; j < kKeys; ++j) scores[j] = total[j];
  } else {
    sum_four(d, sum, scores);
    if constexpr (kKeys > 4) sum_four(d, sum + 4, scores + 4);
  }
}

template <class T, class Activation>
void score_rows(const Form<T>& form, Tile<T>& tile, Activation f) {
  using D = hn::ScalableTag<T>;
  const D d;
  const size_t padded = form.padded;
  // Key rows of one block stay in L1 (16 KB) while all queries pass.
  const size_t block = std::max<size_t>(8, 16384 / sizeof(T) / padded / 8 * 8);
  for (size_t j0 = 0; j0 < tile.nk; j0 += block) {
    for (size_t i = 0; i < tile.nq; ++i) {
      if (tile.prefetch) tile.prefetch->prefetch_next();
      const T* u = tile.q + i * tile.q_stride;
      f.query_is_raw = u[padded] == kRaw;
      const size_t end = std::min({j0 + block, tile.nk, tile.row_end(i)});
      for (size_t j = std::max(j0, tile.row_begin(i)); j < end;) {
        const T* v = tile.k + j * tile.k_stride;
        T* scores = tile.s + i * tile.s_stride + j;
        const auto run = [&]<size_t kKeys>() HWY_ATTR {
          score_keys<D, Activation, kKeys>(d, f, u, v, tile.k_stride, form.weight, padded,
                                           form.base, scores);
          j += kKeys;
        };
        if constexpr (std::is_same_v<Activation, Tanh<D, kRaw>>) {
          f.key_is_raw = v[padded] == kRaw;
          run.template operator()<1>();
        } else if (end - j >= 8) {
          run.template operator()<8>();
        } else if (end - j >= 4) {
          run.template operator()<4>();
        } else if (end - j >= 2) {
          run.template operator()<2>();
        } else {
          run.template operator()<1>();
        }
      }
    }
  }
}

template <class T>
void score_tile(const Form<T>& form, Tile<T>& tile) {
  with_activation(form, tile, [&](auto f) HWY_ATTR { score_rows(form, tile, f); });
}
template void score_tile<float>(const Form<float>&, Tile<float>&);
template void score_tile<double>(const Form<double>&, Tile<double>&);

}  // namespace additive
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();
