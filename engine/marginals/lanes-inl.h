// What the sums over chains and trees share: numbers whose lanes are the items of a batch, alone or
// with their derivative along a direction, and sums of exponentials of them.
#include <cstddef>
#include <limits>

#if defined(FOVEA_ENGINE_MARGINALS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_MARGINALS_LANES_INL_H_
#undef FOVEA_ENGINE_MARGINALS_LANES_INL_H_
#else
#define FOVEA_ENGINE_MARGINALS_LANES_INL_H_
#endif

#include "hwy/highway.h"
#include "engine/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace lanes {

namespace hn = hwy::HWY_NAMESPACE;

// A value. In memory: one vector.
template <class T>
struct Plain {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr size_t kVectors = 1;
  V value;

  static HWY_INLINE Plain load(const T* cell) { return {hn::LoadU(D(), cell)}; }
  HWY_INLINE void store(T* cell) const { hn::StoreU(value, D(), cell); }
  static HWY_INLINE Plain of(T x) { return {hn::Set(D(), x)}; }
  friend HWY_INLINE Plain operator+(Plain a, Plain b) { return {hn::Add(a.value, b.value)}; }
  // What a caller sees of a number: itself.
  HWY_INLINE V result() const { return value; }
};

// A value and its derivative. In memory: two vectors.
template <class T>
struct Dual {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr size_t kVectors = 2;
  V value, along;

  static HWY_INLINE Dual load(const T* cell) {
    return {hn::LoadU(D(), cell), hn::LoadU(D(), cell + hn::Lanes(D()))};
  }
  HWY_INLINE void store(T* cell) const {
    hn::StoreU(value, D(), cell);
    hn::StoreU(along, D(), cell + hn::Lanes(D()));
  }
  static HWY_INLINE Dual of(T x) { return {hn::Set(D(), x), hn::Zero(D())}; }
  friend HWY_INLINE Dual operator+(Dual a, Dual b) {
    return {hn::Add(a.value, b.value), hn::Add(a.along, b.along)};
  }
  HWY_INLINE V result() const { return along; }
};

template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> lowest() {
  return hn::Set(hn::ScalableTag<T>(), -std::numeric_limits<T>::infinity());
}

// log(sum_k exp(term(k))) for k in [begin, end): -infinity without a term above it. `term` is
// called twice for every k, which is cheaper than storing its values.
template <class T, class Term>
HWY_INLINE Plain<T> log_sum_exp(Plain<T>, size_t begin, size_t end, const Term& term) {
  const hn::ScalableTag<T> d;
  auto top = lowest<T>();
  for (size_t k = begin; k < end; ++k) top = at_least(d, top, term(k).value);
  // Where every term is -infinity any finite base will do.
  const auto base = hn::IfThenZeroElse(hn::Eq(top, lowest<T>()), top);
  auto sum = hn::Zero(d);
  for (size_t k = begin; k < end; ++k)
    sum = hn::Add(sum, exp_bounded(d, hn::Sub(term(k).value, base)));
  return {hn::Add(base, log(d, sum))};
}
// Its derivative is the mean of the terms' under their softmax.
template <class T, class Term>
HWY_INLINE Dual<T> log_sum_exp(Dual<T>, size_t begin, size_t end, const Term& term) {
  const hn::ScalableTag<T> d;
  auto top = lowest<T>();
  for (size_t k = begin; k < end; ++k) top = at_least(d, top, term(k).value);
  const auto base = hn::IfThenZeroElse(hn::Eq(top, lowest<T>()), top);
  auto sum = hn::Zero(d), along = hn::Zero(d);
  for (size_t k = begin; k < end; ++k) {
    const Dual<T> x = term(k);
    const auto weight = exp_bounded(d, hn::Sub(x.value, base));
    sum = hn::Add(sum, weight);
    along = hn::MulAdd(weight, x.along, along);
  }
  const auto none = hn::Eq(sum, hn::Zero(d));
  const auto mean = hn::Div(along, hn::IfThenElse(none, hn::Set(d, T(1)), sum));
  return {hn::Add(base, log(d, sum)), mean};
}

// The share of `total` = log(... + exp(term)) that is the term's, times what the total counts for:
// how much of a sum's gradient goes to one of its terms. 0 where the total is -infinity.
template <class T>
HWY_INLINE Plain<T> share(Plain<T> term, Plain<T> total, Plain<T> count) {
  const hn::ScalableTag<T> d;
  const auto weight = hn::IfThenZeroElse(hn::Eq(total.value, lowest<T>()),
                                         exp_bounded(d, hn::Sub(term.value, total.value)));
  return {hn::Mul(count.value, weight)};
}
template <class T>
HWY_INLINE Dual<T> share(Dual<T> term, Dual<T> total, Dual<T> count) {
  const hn::ScalableTag<T> d;
  const auto weight = hn::IfThenZeroElse(hn::Eq(total.value, lowest<T>()),
                                         exp_bounded(d, hn::Sub(term.value, total.value)));
  const auto value = hn::Mul(count.value, weight);
  return {value, hn::MulAdd(value, hn::Sub(term.along, total.along), hn::Mul(count.along, weight))};
}

// Adds to a cell.
template <class N, class T>
HWY_INLINE void add(T* cell, N x) {
  (N::load(cell) + x).store(cell);
}

// The items of a batch that share a vector. Lanes past the last item repeat it and are not written.
template <class T>
struct Items {
  using D = hn::ScalableTag<T>;
  size_t first, count;
  int64_t lengths[HWY_MAX_BYTES / sizeof(T)];
  int64_t longest = 0;

  Items(size_t first_item, size_t batch, const int64_t* given, size_t n)
      : first(first_item), count(HWY_MIN(hn::Lanes(D()), batch - first_item)) {
    for (size_t l = 0; l < hn::Lanes(D()); ++l) {
      lengths[l] = given ? given[item(l)] : static_cast<int64_t>(n);
      longest = HWY_MAX(longest, lengths[l]);
    }
  }
  size_t item(size_t lane) const { return first + HWY_MIN(lane, count - 1); }

  // A score of each item, at data + item * stride; 0 where `reach` is not below the item's length:
  // what stands in padding has no influence, not even as NaN. Without data 0.
  HWY_INLINE hn::Vec<D> read(const T* data, size_t stride, size_t reach) const {
    T lane[HWY_MAX_BYTES / sizeof(T)];
    for (size_t l = 0; l < hn::Lanes(D()); ++l) {
      const bool inside = data && static_cast<int64_t>(reach) < lengths[l];
      lane[l] = inside ? data[item(l) * stride] : T(0);
    }
    return hn::LoadU(D(), lane);
  }
  HWY_INLINE void write(hn::Vec<D> x, T* data, size_t stride) const {
    T lane[HWY_MAX_BYTES / sizeof(T)];
    hn::StoreU(x, D(), lane);
    for (size_t l = 0; l < count; ++l) data[item(l) * stride] = lane[l];
  }
  // `x` in the lanes of the items of this length, `other` in the rest.
  template <class N>
  HWY_INLINE N where_length_is(size_t length, N x, N other) const {
    T lane[HWY_MAX_BYTES / sizeof(T)];
    for (size_t l = 0; l < hn::Lanes(D()); ++l)
      lane[l] = lengths[l] == static_cast<int64_t>(length) ? T(1) : T(0);
    const auto mask = hn::Gt(hn::LoadU(D(), lane), hn::Zero(D()));
    x.value = hn::IfThenElse(mask, x.value, other.value);
    if constexpr (N::kVectors == 2) x.along = hn::IfThenElse(mask, x.along, other.along);
    return x;
  }
};

// A score with its direction, as the number the sums are made of.
template <class T>
HWY_INLINE Plain<T> read(Plain<T>, const Items<T>& items, const T* value, const T*, size_t stride,
                         size_t reach) {
  return {items.read(value, stride, reach)};
}
template <class T>
HWY_INLINE Dual<T> read(Dual<T>, const Items<T>& items, const T* value, const T* along,
                        size_t stride, size_t reach) {
  return {items.read(value, stride, reach), items.read(along, stride, reach)};
}

}  // namespace lanes
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
