// What the normalisers that see whole rows share: the largest score, and the few scores close
// enough to it to matter.
#if defined(FOVEA_ENGINE_CANDIDATES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_CANDIDATES_INL_H_
#undef FOVEA_ENGINE_CANDIDATES_INL_H_
#else
#define FOVEA_ENGINE_CANDIDATES_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/stage.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace candidates {

namespace hn = hwy::HWY_NAMESPACE;

// Rows of score tiles are padded with masked places to whole vectors.
template <class T>
HWY_INLINE size_t padded(size_t n) {
  constexpr size_t N = HWY_LANES(T);
  return (n + N - 1) / N * N;
}

// The largest of n scores, -infinity for none. NaN may get lost: `collect` finds it.
template <class T>
HWY_INLINE T largest(const T* HWY_RESTRICT s, size_t n) {
  const hn::ScalableTag<T> d;
  constexpr size_t N = HWY_LANES(T);
  auto a = hn::Set(d, -std::numeric_limits<T>::infinity()), b = a;
  size_t c = 0;
  for (; c + 2 * N <= n; c += 2 * N) {
    a = hn::Max(a, hn::LoadU(d, s + c));
    b = hn::Max(b, hn::LoadU(d, s + c + N));
  }
  for (; c < n; c += N) a = hn::Max(a, hn::LoadU(d, s + c));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(a, b)));
}

// A score a little below most + tau, the edge of a support: by more than rounding moves it.
template <class T>
T below_threshold(T most, T tau) {
  const T rounding = 4 * std::numeric_limits<T>::epsilon();
  return most + tau - rounding * (std::fabs(most) + std::fabs(tau));
}

// Scores of one row above a limit, less the row's largest, in the order of their columns.
template <class T>
struct List {
  std::vector<T> value;
  std::vector<int32_t> column;
  size_t n = 0;

  void reserve(size_t columns) {
    const size_t room = columns + 2 * HWY_LANES(T);  // whole vectors are stored
    if (value.size() < room) {
      value.resize(room);
      column.resize(room);
    }
  }
};

// One list a thread, grown to the longest row it has met.
template <class T>
List<T>& list_of_this_thread() {
  static thread_local List<T> list;
  return list;
}

// Appends the lanes that are `in` to the list, whose first n entries stay. Register compression,
// then a store: the storing instruction is slow on some cores.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE size_t append(D d, hn::Mask<D> in, hn::Vec<D> value,
                         hn::Vec<hn::RebindToSigned<D>> column, List<T>& list, size_t n) {
  const hn::RebindToSigned<D> di;
  hn::StoreU(hn::Compress(value, in), d, list.value.data() + n);
  hn::StoreU(hn::Compress(column, hn::RebindMask(di, in)), di, list.column.data() + n);
  return n + hn::CountTrue(d, in);
}

// Fills `list` with s - base where s > limit; NaN counts as above.
template <class T>
HWY_INLINE void collect(const T* HWY_RESTRICT s, size_t columns, T limit, T base, List<T>& list) {
  const hn::ScalableTag<T> d;
  constexpr size_t N = HWY_LANES(T);
  const auto bound = hn::Set(d, limit), origin = hn::Set(d, base);
  size_t n = 0;
  for (size_t c = 0; c < columns; c += N) {
    const auto x = hn::LoadU(d, s + c);
    const auto above = hn::Not(hn::Le(x, bound));
    if (HWY_LIKELY(hn::AllFalse(d, above))) continue;
    if constexpr (sizeof(T) == 4 && HWY_TARGET != HWY_SCALAR) {
      const hn::RebindToSigned<decltype(d)> di;
      n = append(d, above, hn::Sub(x, origin), hn::Iota(di, static_cast<int32_t>(c)), list, n);
    } else {
      for (size_t lane = 0; lane < N; ++lane) {
        if (s[c + lane] <= limit) continue;
        list.value[n] = s[c + lane] - base;
        list.column[n++] = static_cast<int32_t>(c + lane);
      }
    }
  }
  list.n = n;
}

// Fills the list's last vector up with entries that never have weight.
template <class T>
HWY_INLINE void pad(List<T>& list) {
  std::fill(list.value.begin() + list.n, list.value.begin() + padded<T>(list.n),
            -std::numeric_limits<T>::infinity());
}

// Drops from a padded list what is not above the limit.
template <class T>
HWY_INLINE void keep_above(List<T>& list, T limit) {
  size_t n = 0;
  if constexpr (sizeof(T) == 4 && HWY_TARGET != HWY_SCALAR) {
    const hn::ScalableTag<T> d;
    const hn::RebindToSigned<decltype(d)> di;
    for (size_t c = 0; c < list.n; c += HWY_LANES(T)) {
      const auto x = hn::LoadU(d, list.value.data() + c);
      n = append(d, hn::Gt(x, hn::Set(d, limit)), x, hn::LoadU(di, list.column.data() + c), list,
                 n);
    }
  } else {
    for (size_t i = 0; i < list.n; ++i) {
      list.value[n] = list.value[i];
      list.column[n] = list.column[i];
      n += list.value[i] > limit;
    }
  }
  list.n = n;
  pad(list);
}

// Writes weights where the driver wants them: compressed with their columns, or in place among
// zeros. `weight(i)` is that of list entry i; entries with weight 0 are left out. Returns how many
// there are.
template <class T, class Weight>
HWY_INLINE size_t store_weights(Tile<T>& tile, size_t r, const List<T>& list,
                                const Weight& weight) {
  T* s = tile.s + r * tile.s_stride;
  if (tile.support) {
    int32_t* support = tile.support + r * tile.s_stride;
    int32_t n = 0;
    for (size_t i = 0; i < list.n;
         ++i) {  // without a branch: which of them have weight is anybody's guess
      const T a = weight(i);
      s[n] = a;
      support[n] = list.column[i];
      n += a > 0;
    }
    tile.support_count[r] = n;
    return static_cast<size_t>(n);
  }
  std::fill_n(s, padded<T>(tile.nk), T(0));
  size_t n = 0;
  for (size_t i = 0; i < list.n; ++i) {
    const T a = weight(i);
    s[list.column[i]] = a;
    n += a > 0;
  }
  return n;
}

// A row without weights: it saw no key (carry 0) or a score of NaN or +infinity (carry NaN).
template <class T>
HWY_INLINE void store_nothing(Tile<T>& tile, size_t r, T carry) {
  std::fill_n(tile.s + r * tile.s_stride, padded<T>(tile.nk), T(0));
  if (tile.support) tile.support_count[r] = 0;
  tile.rows.carry[r] = carry;
}

}  // namespace candidates
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
