// The micro-kernel under every matrix product of the engine: a block of kRows x kVectors
// accumulators that stays in registers while the depth runs. Each element is one chain of
// multiply-adds in the order of the depth, so its bits do not depend on where in a tile it lies.
#if defined(FOVEA_ENGINE_SIMD_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_SIMD_PRODUCT_INL_H_
#undef FOVEA_ENGINE_SIMD_PRODUCT_INL_H_
#else
#define FOVEA_ENGINE_SIMD_PRODUCT_INL_H_
#endif

#include "engine/loops/prefetch.h"
#include "engine/loops/product.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace product {

namespace hn = hwy::HWY_NAMESPACE;

// The number of registers bounds the shape: rows x vectors accumulators, the vectors of the right
// side, and one broadcast. With 32 registers it is 6 x 4, which keeps two 512-bit units busy (24
// multiply-adds for 10 loads). With 16 registers it is 6 x 2.
#if HWY_TARGET == HWY_AVX2
inline constexpr size_t kRows = 6, kVectors = 2;
#elif HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr size_t kRows = 6, kVectors = 4;
#else
inline constexpr size_t kRows = 4, kVectors = 2;
#endif

template <class T>
inline constexpr size_t kLanes = HWY_LANES(T);
// Keys of one sub-panel: [depth][kPanelWidth].
template <class T>
inline constexpr size_t kPanelWidth = kVectors* kLanes<T>;

// c = alpha * a b, on top of c as `into` says. a[r][k] lies at a[r * a_stride + k], or, transposed,
// at a[k * a_stride + r].
template <class T>
struct Block {
  const T* a = nullptr;
  size_t a_stride;
  const T* b = nullptr;
  size_t b_stride;
  T* c = nullptr;
  size_t c_stride;
  size_t depth = 0;
  Into into;
  T alpha;
  const T* carry = nullptr;  // one factor a row, for Into::kCarry
  size_t lanes = 0;          // of the last vector, when partial
  Addend<T> addend{};        // with Into::kStore and whole vectors only
  const char* prefetch =
      nullptr;  // with Prefetch::kBlock: kRows rows of kLines lines to prefetch meanwhile
  int64_t prefetch_stride = 0;  // in bytes
};

// The first `lanes` elements of a vector, and no byte beyond them. Below AVX2 Highway's masked
// loads and stores touch a whole aligned vector, so those targets go through a buffer.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_first(D d, const T* p, size_t lanes) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(d, lanes), d, p);
#else
  HWY_ALIGN T buffer[HWY_LANES(T)] = {};
  for (size_t i = 0; i < lanes; ++i) buffer[i] = p[i];
  return hn::Load(d, buffer);
#endif
}
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_first(hn::Vec<D> x, D d, T* p, size_t lanes) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hn::BlendedStore(x, hn::FirstN(d, lanes), d, p);
#else
  HWY_ALIGN T buffer[HWY_LANES(T)];
  hn::Store(x, d, buffer);
  for (size_t i = 0; i < lanes; ++i) p[i] = buffer[i];
#endif
}

// Lines of a panel's width.
template <class T>
inline constexpr size_t kLines = (kPanelWidth<T> * sizeof(T) + 63) / 64;

enum class Side { kPlain, kTransposed };
enum class Edge { kWhole, kPartial };
enum class Prefetch { kNothing, kBlock };

template <class T, size_t kR, size_t kV, Side kSide, Edge kEdge, Prefetch kPrefetch>
HWY_INLINE void multiply(const Block<T>& m) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr size_t N = kLanes<T>;
  const auto load = [&](const T* p) HWY_ATTR {
    if constexpr (kEdge == Edge::kPartial)
      return load_first(d, p, m.lanes);
    else
      return hn::LoadU(d, p);
  };
  V sum[kR][kV];
#pragma GCC unroll 8
  for (size_t r = 0; r < kR; ++r)
#pragma GCC unroll 8
    for (size_t v = 0; v < kV; ++v) sum[r][v] = hn::Zero(d);
  const T* HWY_RESTRICT a[kR];
#pragma GCC unroll 8
  for (size_t r = 0; r < kR; ++r)
    a[r] = kSide == Side::kTransposed ? m.a + r : m.a + r * m.a_stride;
  const size_t a_step = kSide == Side::kTransposed ? m.a_stride : 1;
  const T* HWY_RESTRICT b = m.b;
  size_t at = 0;
  // Prefetched lines go to the second-level cache, one line of each row at a time: a core can have
  // some sixteen lines in flight, and waits when there are more.
  const char* prefetch = m.prefetch;
  size_t k = 0;
  do {
    size_t until = m.depth;
    if constexpr (kPrefetch == Prefetch::kBlock) {
      for (size_t r = 0; r < kR; ++r)
        __builtin_prefetch(prefetch + static_cast<int64_t>(r) * m.prefetch_stride, 0, 2);
      prefetch += 64;
      until = std::min(until, k + m.depth / kLines<T> + 1);
    }
#pragma GCC unroll 2
    for (; k < until; ++k) {
      V right[kV];
#pragma GCC unroll 8
      for (size_t v = 0; v < kV; ++v) right[v] = load(b + v * N);
#pragma GCC unroll 8
      for (size_t r = 0; r < kR; ++r) {
        const V left = hn::Set(d, a[r][at]);
#pragma GCC unroll 8
        for (size_t v = 0; v < kV; ++v) sum[r][v] = hn::MulAdd(left, right[v], sum[r][v]);
      }
      b += m.b_stride;
      at += a_step;
    }
  } while (kPrefetch == Prefetch::kBlock && k < m.depth);
  if (m.alpha != T(1)) {
    const V alpha = hn::Set(d, m.alpha);
#pragma GCC unroll 8
    for (size_t r = 0; r < kR; ++r)
#pragma GCC unroll 8
      for (size_t v = 0; v < kV; ++v) sum[r][v] = hn::Mul(sum[r][v], alpha);
  }
  // c = last(x, row, column)
  const auto finish = [&](const auto& last) HWY_ATTR {
#pragma GCC unroll 8
    for (size_t r = 0; r < kR; ++r)
#pragma GCC unroll 8
      for (size_t v = 0; v < kV; ++v) {
        T* c = m.c + r * m.c_stride + v * N;
        const V x = last(sum[r][v], r, v, c);
        if constexpr (kEdge == Edge::kPartial)
          store_first(x, d, c, m.lanes);
        else
          hn::StoreU(x, d, c);
      }
  };
  if (m.addend.data) {
    finish([&](V x, size_t r, size_t v, const T*) HWY_ATTR {
      return hn::Add(
          x, hn::LoadU(d, m.addend.data + static_cast<ptrdiff_t>(r) * m.addend.stride + v * N));
    });
  } else if (m.into == Into::kStore) {
    finish([](V x, size_t, size_t, const T*) HWY_ATTR { return x; });
  } else if (m.into == Into::kAdd) {
    finish([&](V x, size_t, size_t, const T* c) HWY_ATTR { return hn::Add(load(c), x); });
  } else {
    finish([&](V x, size_t r, size_t, const T* c)
               HWY_ATTR { return hn::MulAdd(hn::Set(d, m.carry[r]), load(c), x); });
  }
}

// Sizes a remainder is made of.
HWY_INLINE size_t rows_of(size_t left) {
  return left >= kRows ? kRows : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}
// Five vectors are better 3 + 2 than 4 + 1: a single one leaves the multiply-adds waiting for
// loads.
HWY_INLINE size_t vectors_of(size_t left) {
  if (left == kVectors + 1 && kVectors > 2) return kVectors - 1;
  return left >= kVectors ? kVectors : left;
}

// Any block but the full-size one; product_remainders.cc has them all.
template <class T, Side kSide>
void multiply_remainder(size_t rows, size_t vectors, const Block<T>& m);

// The full-size block is inlined into its loop; remainders are calls.
template <class T, Side kSide, Prefetch kPrefetch = Prefetch::kNothing>
HWY_INLINE void multiply_any(size_t rows, size_t vectors, const Block<T>& m) {
  if (HWY_LIKELY(rows == kRows && vectors == kVectors && m.lanes == 0)) {
    return multiply<T, kRows, kVectors, kSide, Edge::kWhole, kPrefetch>(m);
  }
  multiply_remainder<T, kSide>(rows, vectors, m);
}

// The next of a tile's lists.
template <class T>
HWY_INLINE bool prefetch_next(PrefetchList* prefetch, Block<T>& m) {
  return prefetch && prefetch->next(kRows, 64 * kLines<T>, &m.prefetch, &m.prefetch_stride);
}

// A product. If its block is large enough to hide the cost, it also prefetches the next
// lines.
template <class T>
HWY_INLINE void multiply_and_prefetch(PrefetchList* prefetch, size_t rows, size_t vectors,
                                      Block<T>& block) {
  const bool whole = rows == kRows && vectors == kVectors && block.lanes == 0;
  if (whole && prefetch_next(prefetch, block)) {
    return multiply<T, kRows, kVectors, Side::kPlain, Edge::kWhole, Prefetch::kBlock>(block);
  }
  multiply_any<T, Side::kPlain>(rows, vectors, block);
}

// As many whole blocks as `rows` holds, one below the other. No mask may cut them. The fields of a
// block stay in registers from one block to the next. prefetch(m) sets what block m prefetches, and
// returns whether there is anything. Returns the number of rows done.
template <class T, Side kSide, class Prefetching>
HWY_INLINE size_t multiply_down(size_t rows, Block<T> m, const Prefetching& prefetch) {
  size_t r = 0;
  for (; r + kRows <= rows; r += kRows) {
    if (prefetch(m))
      multiply<T, kRows, kVectors, kSide, Edge::kWhole, Prefetch::kBlock>(m);
    else
      multiply<T, kRows, kVectors, kSide, Edge::kWhole, Prefetch::kNothing>(m);
    m.a += kSide == Side::kPlain ? kRows * m.a_stride : kRows;
    m.c += kRows * m.c_stride;
    if (m.carry) m.carry += kRows;
    if (m.addend.data) m.addend.data += static_cast<ptrdiff_t>(kRows) * m.addend.stride;
  }
  return r;
}

// Of Products; product_sums.cc.
template <class T>
void aggregate(const Tile<T>& tile, const T* weights, const T* rows, size_t stride, size_t width,
               T alpha, Into into, const T* carry, T* out, size_t out_stride);
template <class T>
void transposed(const Tile<T>& tile, const T* weights, const T* rows, size_t stride, size_t width,
                T alpha, Into into, T* out, size_t out_stride);

}  // namespace product
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
