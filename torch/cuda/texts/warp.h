// Sums and maxima over the lanes of a warp, or of groups of `kLanes` of them: the same for every
// lane, in a fixed order. `mask`: the lanes that are there, at least the group's.
#pragma once

namespace fovea::cuda {

constexpr int kWarp = 32;

template <int kLanes = kWarp, class Number>
Number lanes_sum(Number x, unsigned mask = ~0u) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2)
    x += __shfl_xor_sync(mask, x, distance);
  return x;
}
template <int kLanes = kWarp>
T lanes_max(T x, unsigned mask = ~0u) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2)
    x = larger(x, __shfl_xor_sync(mask, x, distance));
  return x;
}
template <int kLanes = kWarp>
bool lanes_any(bool x) {
  return lanes_sum<kLanes>(x ? 1 : 0) > 0;
}

}  // namespace fovea::cuda
