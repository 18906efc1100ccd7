#include "engine/tiles/dropout.h"

#include "engine/tiles/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/tiles/dropout.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace dropout {

// Plain integer loops: the compiler vectorises them for each target.
template <class T>
void drop(const Dropout& dropout, const Tile<T>& tile, const T* in, T* out) {
  const T scale = static_cast<T>(dropout.scale);
  const uint32_t threshold = dropout.threshold;
  for (size_t r = 0; r < tile.nq; ++r) {
    const uint64_t row =
        random_row(dropout.seed, tile.batch, tile.head, static_cast<uint64_t>(tile.position_at(r)));
    const T* from = in + r * tile.s_stride;
    T* to = out + r * tile.s_stride;
    if (tile.key_index) {
      for (size_t c = 0; c < tile.nk; ++c) {
        to[c] = random_pair(row, static_cast<uint32_t>(tile.key_index[c])) < threshold
                    ? T(0)
                    : scale * from[c];
      }
    } else {
      const uint32_t k0 = static_cast<uint32_t>(tile.k0);
      for (size_t c = 0; c < tile.nk; ++c) {
        to[c] =
            random_pair(row, k0 + static_cast<uint32_t>(c)) < threshold ? T(0) : scale * from[c];
      }
    }
    for (size_t c = tile.nk; c < tile.padded_keys(); ++c) to[c] = 0;
  }
}

}  // namespace dropout

void drop_f32(const Dropout& d, const Tile<float>& t, const float* in, float* out) {
  dropout::drop(d, t, in, out);
}
void drop_f64(const Dropout& d, const Tile<double>& t, const double* in, double* out) {
  dropout::drop(d, t, in, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {

HWY_EXPORT(drop_f32);
HWY_EXPORT(drop_f64);

Dropout make_dropout(double p, uint64_t seed) {
  return {.seed = seed, .threshold = dropout_threshold(p), .scale = 1 / (1 - p)};
}

template <>
void drop<float>(const Dropout& dropout, const Tile<float>& tile, const float* in, float* out) {
  HWY_DYNAMIC_DISPATCH(drop_f32)(dropout, tile, in, out);
}
template <>
void drop<double>(const Dropout& dropout, const Tile<double>& tile, const double* in, double* out) {
  HWY_DYNAMIC_DISPATCH(drop_f64)(dropout, tile, in, out);
}

}  // namespace fovea::engine
#endif
