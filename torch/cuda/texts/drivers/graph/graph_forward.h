// Forward on a graph.
#pragma once

namespace fovea::cuda {

struct GraphForward : GraphRow {
  T sums[kValueLanes] = {};
  T total = 0, shift = -infinity_of(T()), seen = 0;
  bool bad = false;

  void add_value(const Columns& value, T weight) {
    if (weight == 0) return;
#pragma unroll
    for (int n = 0; n < kValueLanes; ++n) sums[n] += weight * value.x[n][0];
  }

  template <bool kValues>
  void fold() {
    each_seen<kValues>([&](const Place& p, const Scored& scored, const Edge& edge) {
      if constexpr (Normaliser::kShifts) {
        if (scored.e > shift) {
          const T rescale = shift == -infinity_of(T()) ? T(0) : exponential(shift - scored.e);
          total *= rescale;
#pragma unroll
          for (int n = 0; n < kValueLanes; ++n) sums[n] *= rescale;
          shift = scored.e;
        }
      }
      bad |= Normaliser::kLooks && !is_finite(scored.e);
      const T x = Normaliser::power(scored.e, shift);
      total += x;
      seen += 1;
      if constexpr (kValues) add_value(edge.value, x * dropout_factor(a, data.random, p.j));
    });
  }
  Row folded(T& factor) const {
    factor = bad ? nan_of(T()) : T(0);
    Row made{0, 0, 0, bad ? kSpoiled : kEmpty};
    if (!bad && seen > 0) {
      made = Normaliser::finish(a, head, shift, total, seen);
      factor = Normaliser::factor(shift, made);
    }
    return made;
  }

  Row solved(T& lse) {
    if constexpr (Normaliser::kThreshold) {
      T* scores =
          static_cast<T*>(a.scratch) + static_cast<Whole>(head) * a.scratch_row + first_edge();
      for (int n = lane(); n < edges(); n += kWarp) scores[n] = -infinity_of(T());
      __syncwarp();
      each_seen<false>([&](const Place& p, const Scored& scored, const Edge&) {
        bad |= !is_finite(scored.e);
        if (lane() == 0) scores[p.ordinal] = scored.e;
      });
      __syncwarp();
      if (bad) return {0, 0, 0, kSpoiled};
      return Normaliser::solve(a, head, scores, edges(), data.random, 0, &lse);
    } else {
      fold<false>();
      T factor;
      const Row made = folded(factor);
      lse = Normaliser::lse(made);
      return made;
    }
  }

  void write(T factor) {
#pragma unroll
    for (int n = 0; n < kValueLanes; ++n) sums[n] = factor == 0 ? T(0) : factor * sums[n];
    write_row(row_of<Value>(a.output, 0, head, row), kValueWidth, sums);
  }

  void run() {
    start(false);
    T factor = 1, lse = 0;
    Row made;
    if constexpr (kOnePass) {
      fold<true>();
      made = folded(factor);
      lse = Normaliser::lse(made);
    } else {
      made = solved(lse);
      each_seen<true>([&](const Place& p, const Scored& scored, const Edge& edge) {
        const T weight = weight_of(a, head, scored.e, made, p.ordinal);
        const T kept = weight == 0 ? T(0) : weight * dropout_factor(a, data.random, p.j);
        Modifiers::weigh(a.modifier, p, kept, DistanceSums{});
        add_value(edge.value, kept);
      });
    }
    if (lane() == 0) keep_row(a, index, made, lse);
    write(factor);
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(256)
    fovea_forward(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  const Sequence s = sequence_of(a, 0);
  each_group(static_cast<Whole>(a.queries) * a.heads, [&](Whole n) {
    GraphForward{{a, s, static_cast<int>(n % a.heads), static_cast<int>(n / a.heads), 0, {}, {}}}
        .run();
  });
}
