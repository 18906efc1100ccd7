// The arithmetic of additive scores: two activations, and which of their forms serves a tile.
// additive.cc has the equations.
#if defined(FOVEA_ENGINE_ADDITIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_ADDITIVE_INL_H_
#undef FOVEA_ENGINE_ADDITIVE_INL_H_
#else
#define FOVEA_ENGINE_ADDITIVE_INL_H_
#endif

#include <algorithm>

#include "engine/simd/math-inl.h"
#include "engine/tile.h"
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
    return kClass <= kPlain ? x : at_most(d, hn::Set(d, kClamp<T>), x);
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

// A head's parameters as the loops read them.
template <class T>
struct Form {
  bool tanh;
  T slope;               // of LeakyReLU
  size_t width, padded;  // features, and those a prepared row has
  const T* weight;       // [padded], times the activation's kScoreFactor
  T base;                // the sum of weights, for tanh
};

// body(the activation that serves every row of the tile)
template <class T, class Body>
HWY_INLINE void with_activation(const Form<T>& form, const Tile<T>& tile, const Body& body) {
  using D = hn::ScalableTag<T>;
  if (!form.tanh) return body(Leaky<D>{form.slope});
  T most = kSmall;
  for (size_t i = 0; i < tile.nq; ++i)
    most = std::max(most, tile.q[i * tile.q_stride + form.padded]);
  for (size_t j = 0; j < tile.nk; ++j)
    most = std::max(most, tile.k[j * tile.k_stride + form.padded]);
  switch (static_cast<RowClass>(most)) {
    case kSmall:
      return body(Tanh<D, kSmall>{});
    case kPlain:
      return body(Tanh<D, kPlain>{});
    case kClamped:
      return body(Tanh<D, kClamped>{});
    default:
      return body(Tanh<D, kRaw>{});
  }
}

// additive_scores.cc
template <class T>
void score_tile(const Form<T>& form, Tile<T>& tile);
// additive_backward.cc
template <class T>
void backward_tile(const Form<T>& form, Tile<T>& tile, bool first_query, bool first_key,
                   T* partial);

}  // namespace additive
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
