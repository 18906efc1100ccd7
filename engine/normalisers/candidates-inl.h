// What the normalisers that see whole rows share: the largest score, and the few scores close
// enough to it to matter.
#if defined(FOVEA_ENGINE_CANDIDATES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ENGINE_CANDIDATES_INL_H_
#undef FOVEA_ENGINE_CANDIDATES_INL_H_
#else
#define FOVEA_ENGINE_CANDIDATES_INL_H_
#endif

#include <algorithm>
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

// Fills `list` with s - base where s > limit; NaN counts as above.
template <class T>
HWY_INLINE void collect(const T* HWY_RESTRICT s, size_t columns, T limit, T base, List<T>& list) {
  const hn::ScalableTag<T> d;
  constexpr size_t N = HWY_LANES(T);
  const auto bound = hn::Set(d, limit), origin = hn::Set(d, base);
  T* HWY_RESTRICT value = list.value.data();
  int32_t* HWY_RESTRICT column = list.column.data();
  size_t n = 0;
  for (size_t c = 0; c < columns; c += N) {
    const auto x = hn::LoadU(d, s + c);
    const auto above = hn::Not(hn::Le(x, bound));
    if (HWY_LIKELY(hn::AllFalse(d, above))) continue;
    if constexpr (sizeof(T) == 4 && HWY_TARGET != HWY_SCALAR) {
      // Register compression, then a store: the storing instruction is slow on some cores.
      const hn::RebindToSigned<decltype(d)> di;
      hn::StoreU(hn::Compress(hn::Sub(x, origin), above), d, value + n);
      hn::StoreU(hn::Compress(hn::Iota(di, static_cast<int32_t>(c)), hn::RebindMask(di, above)), di,
                 column + n);
      n += hn::CountTrue(d, above);
    } else {
      for (size_t lane = 0; lane < N; ++lane) {
        if (s[c + lane] <= limit) continue;
        value[n] = s[c + lane] - base;
        column[n++] = static_cast<int32_t>(c + lane);
      }
    }
  }
  list.n = n;
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

// A row without weights: it saw no key (carry 0) or a score that is not a number (carry NaN).
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
