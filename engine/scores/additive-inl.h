// The arithmetic of additive scores: two activations, the scores of one query with a few keys, and
// what four queries and all keys of a tile give each other backward. additive.cc has the equations.
#if defined(FOVEA_ENGINE_ADDITIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_ADDITIVE_INL_H_
#undef FOVEA_ENGINE_ADDITIVE_INL_H_
#else
#define FOVEA_ENGINE_ADDITIVE_INL_H_
#endif

#include "engine/simd/math-inl.h"
#include "engine/simd/reduce-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace additive {

namespace hn = hwy::HWY_NAMESPACE;

// How large a row's entries may be for a way of computing r, so that nothing overflows: products of
// four (1 + uv), of two, or uv.
template <class T>
inline constexpr T kSmallLimit = sizeof(T) == 4 ? T(5.4) : T(44);
template <class T>
inline constexpr T kPlainLimit = sizeof(T) == 4 ? T(10.5) : T(88);
template <class T>
inline constexpr T kClampedLimit = sizeof(T) == 4 ? T(42) : T(350);
template <class T>
inline constexpr T kClamp = sizeof(T) == 4 ? T(1.15e18) : T(1e150);

// A prepared row is `padded` features, then its class and padding to a whole cache line.
using RowClass = int;
inline constexpr RowClass kSmall = 0, kPlain = 1, kClamped = 2, kRaw = 3;
inline constexpr size_t kClassPadding = 16;

template <class D, RowClass kClass>
struct Tanh {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  bool query_is_raw = false,
       key_is_raw = false;  // which of the two rows kept its raw entries, for kRaw

  struct Fraction {
    V above, below;
  };
  // w0 / a + w1 / b = (w0 b + w1 a) / a b
  static HWY_INLINE Fraction two_terms(D d, const V* u, const V* v, const V* w) {
    const V a = denominator(d, u[0], v[0]), b = denominator(d, u[1], v[1]);
    return {hn::MulAdd(w[0], b, hn::Mul(w[1], a)), hn::Mul(a, b)};
  }
  static HWY_INLINE V denominator(D d, V u, V v) {
    const V x = hn::MulAdd(u, v, hn::Set(d, T(1)));
    return kClass <= kPlain ? x : hn::Min(x, hn::Set(d, kClamp<T>));
  }
  HWY_INLINE V raw_ratio(D d, V u, V v) const {
    const V half = hn::Set(d, T(-2));
    const V q = query_is_raw ? hn::Mul(half, u) : hn::Neg(log(d, u));
    const V k = key_is_raw ? hn::Mul(half, v) : hn::Neg(log(d, v));
    return sigmoid(d, hn::Add(q, k));
  }
  // Vectors of features that share a division, where there are so many left.
  static constexpr size_t kShare = kClass == kSmall ? 4 : 2;
  // sum + w r over one vector of features, over two, and over four.
  HWY_INLINE V add_term(D d, V sum, const V* u, const V* v, const V* w) const {
    const V r =
        kClass == kRaw ? raw_ratio(d, u[0], v[0]) : reciprocal(d, denominator(d, u[0], v[0]));
    return hn::MulAdd(w[0], r, sum);
  }
  HWY_INLINE V add_two(D d, V sum, const V* u, const V* v, const V* w) const {
    if constexpr (kClass == kRaw)
      return add_term(d, add_term(d, sum, u, v, w), u + 1, v + 1, w + 1);
    const Fraction f = two_terms(d, u, v, w);
    return hn::MulAdd(f.above, reciprocal(d, f.below), sum);
  }
  HWY_INLINE V add_four(D d, V sum, const V* u, const V* v, const V* w) const {
    const Fraction f = two_terms(d, u, v, w), g = two_terms(d, u + 2, v + 2, w + 2);
    const V above = hn::MulAdd(f.above, g.below, hn::Mul(g.above, f.below));
    return hn::MulAdd(above, reciprocal(d, hn::Mul(f.below, g.below)), sum);
  }
  // r of two queries with one key. Four to a division would wait for each other.
  HWY_INLINE void two_values(D d, V u0, V u1, V v, V* r) const {
    if constexpr (kClass == kRaw) {
      r[0] = raw_ratio(d, u0, v);
      r[1] = raw_ratio(d, u1, v);
    } else {
      const V a = denominator(d, u0, v), b = denominator(d, u1, v);
      const V inverse = reciprocal(d, hn::Mul(a, b));
      r[0] = hn::Mul(inverse, b);
      r[1] = hn::Mul(inverse, a);
    }
  }
  // From r and de: *h sums to what w receives, *g to what q and k receive.
  HWY_INLINE void gradients(D, V r, V de, V* g, V* h) const {
    *h = hn::Mul(de, r);
    *g = hn::NegMulAdd(*h, r, *h);
  }
  // What w is multiplied by in a score, and then again in the gradient of an input.
  static constexpr T kScoreFactor = -2, kInputFactor = -2;
};

template <class D>
struct Leaky {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  T slope;
  bool query_is_raw = false, key_is_raw = false;

  HWY_INLINE V activate(D d, V x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, slope)), x);
  }
  static constexpr size_t kShare = 1;
  HWY_INLINE V add_term(D d, V sum, const V* u, const V* v, const V* w) const {
    return hn::MulAdd(w[0], activate(d, hn::Add(u[0], v[0])), sum);
  }
  HWY_INLINE void two_values(D, V u0, V u1, V v, V* x) const {
    x[0] = hn::Add(u0, v);
    x[1] = hn::Add(u1, v);
  }
  HWY_INLINE void gradients(D d, V x, V de, V* g, V* h) const {
    // At 0 the slope, as libtorch has it.
    *g = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), de, hn::Mul(de, hn::Set(d, slope)));
    *h = hn::Mul(*g, x);
  }
  static constexpr T kScoreFactor = 1, kInputFactor = 1;
};

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

}  // namespace additive
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
