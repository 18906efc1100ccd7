// Rows whose keys several blocks share out: a warp brings the parts of a row (drivers/tiles/forward.h)
// together, in their order.
#pragma once

namespace fovea::cuda {

inline void merge_row(const Arguments& a, const Sequence& s, int head, int row) {
  const Whole index = row_index(a, s, head, row);
  const int parts = static_cast<int>(a.scratch_row), lane = threadIdx.x % kWarp;
  T shift = -infinity_of(T()), total = 0, seen = 0;
  bool bad = false;
  for (int n = 0; n < parts; ++n) {
    const T* part = part_of(a, index, n);
    if (part[2] > 0) shift = larger(shift, part[0]);
    seen += part[2];
    bad |= part[3] != 0;
  }
  const auto weight_of_part = [&](const T* part) {
    if (!(part[2] > 0)) return T(0);
    return Normaliser::kShifts ? exponential(part[0] - shift) : T(1);
  };
  for (int n = 0; n < parts; ++n) {
    const T* part = part_of(a, index, n);
    const T weight = weight_of_part(part);
    if (weight != 0) total += weight * part[1];
  }
  Row made{0, 0, 0, bad ? kSpoiled : kEmpty};
  T factor = bad ? nan_of(T()) : T(0);
  if (!bad && seen > 0) {
    made = Normaliser::finish(a, head, shift, total, seen);
    factor = Normaliser::factor(shift, made);
  }
  if (lane == 0) keep_row(a, index, made, Normaliser::lse(made));
  Value* out = row_of<Value>(a.output, s.batch, head, s.first_query + row);
  for (int c = lane; c < kValueWidth; c += kWarp) {
    T sum = 0;
    for (int n = 0; n < parts; ++n) {
      const T* part = part_of(a, index, n);
      const T weight = weight_of_part(part);
      if (weight != 0) sum += weight * part[kPartHead + c];
    }
    narrow(factor == 0 ? T(0) : factor * sum, out[c]);
  }
}

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(256)
    fovea_merge(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  constexpr int kRows = kThreads / kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  each_query_tile(a, kRows, [&](const Sequence& s, int head, int row) {
    if (row + warp < s.queries) merge_row(a, s, head, row + warp);
  });
}
