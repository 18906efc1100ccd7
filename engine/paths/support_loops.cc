#include "engine/paths/support_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/paths/support_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace support {

namespace hn = hwy::HWY_NAMESPACE;

// 16 places at a time (the padding of a row), as bits. Which places have weight cannot be predicted,
// and a branch for every vector would be mispredicted more often than one for every place.
template <class T>
size_t above(const T* x, size_t n, T bound, T* values, int32_t* places) {
  const hn::ScalableTag<T> d;
  constexpr size_t N = HWY_LANES(T), kPlaces = 64;
  const auto limit = hn::Set(d, bound);
  size_t found = 0;
  for (size_t c = 0; c < n; c += kPlaces) {
    uint64_t bits = 0;
    for (size_t v = 0; v < kPlaces && c + v < n; v += N) {
      uint8_t mask[8] = {};
      hn::StoreMaskBits(d, hn::Gt(hn::LoadU(d, x + c + v), limit), mask);
      uint64_t word;
      __builtin_memcpy(&word, mask, sizeof(word));
      bits |= word << v;
    }
    for (; bits != 0; bits &= bits - 1) {
      const size_t place = c + static_cast<size_t>(__builtin_ctzll(bits));
      values[found] = x[place];
      places[found++] = static_cast<int32_t>(place);
    }
  }
  return found;
}

template <class T>
void scatter(const T* weights, const int32_t* index, size_t n, const T* row, size_t width, T* out) {
  const hn::ScalableTag<T> d;
  constexpr size_t N = HWY_LANES(T);
  for (size_t i = 0; i < n; ++i) {
    if (weights[i] == 0) continue;
    T* HWY_RESTRICT to = out + static_cast<size_t>(index[i]) * width;
    const auto w = hn::Set(d, weights[i]);
    size_t e = 0;
    for (; e + 4 * N <= width; e += 4 * N) {
#pragma GCC unroll 4
      for (size_t v = 0; v < 4 * N; v += N)
        hn::StoreU(hn::MulAdd(w, hn::LoadU(d, row + e + v), hn::LoadU(d, to + e + v)), d,
                   to + e + v);
    }
    for (; e + N <= width; e += N)
      hn::StoreU(hn::MulAdd(w, hn::LoadU(d, row + e), hn::LoadU(d, to + e)), d, to + e);
    for (; e < width; ++e) to[e] += weights[i] * row[e];
  }
}

template <class T>
const SupportLoops<T>& table() {
  static constexpr SupportLoops<T> kTable{above<T>, scatter<T>};
  return kTable;
}

}  // namespace support

const SupportLoops<float>& support_loops_f32() { return support::table<float>(); }
const SupportLoops<double>& support_loops_f64() { return support::table<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(support_loops_f32);
HWY_EXPORT(support_loops_f64);
template <>
const SupportLoops<float>& support_loops<float>() {
  return HWY_DYNAMIC_DISPATCH(support_loops_f32)();
}
template <>
const SupportLoops<double>& support_loops<double>() {
  return HWY_DYNAMIC_DISPATCH(support_loops_f64)();
}
}  // namespace fovea::engine
#endif
