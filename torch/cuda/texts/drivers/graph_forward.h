// Forward on a graph.
#pragma once

namespace fovea::cuda {

struct GraphForward : GraphRow {
  T sums[kValueLanes] = {};
  T total = 0, shift = -infinity_of(T()), seen = 0;
  bool bad = false;

  void add_value(int j, T weight) {
    if (weight == 0) return;
    const Columns value = value_of(j);
#pragma unroll
    for (int n = 0; n < kValueLanes; ++n) sums[n] += weight * value.x[n][0];
  }

  void fold(bool to_values) {
    each_seen([&](const Place& p, const Scored& scored, const Features&) {
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
      if (to_values) add_value(p.j, x * dropout_factor(a, data.random, p.j));
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
      each_seen([&](const Place& p, const Scored& scored, const Features&) {
        bad |= !is_finite(scored.e);
        if (lane() == 0) scores[p.ordinal] = scored.e;
      });
      __syncwarp();
      if (bad) return {0, 0, 0, kSpoiled};
      return Normaliser::solve(a, head, scores, edges(), data.random, 0, &lse);
    } else {
      fold(false);
      T factor;
      const Row made = folded(factor);
      lse = Normaliser::lse(made);
      return made;
    }
  }

  void write(T factor) {
    Value* out = row_of<Value>(a.output, 0, head, row);
#pragma unroll
    for (int n = 0; n < kValueLanes; ++n) {
      const int c = n * kWarp + lane();
      if (c < kValueWidth) narrow(factor == 0 ? T(0) : factor * sums[n], out[c]);
    }
  }

  void run() {
    start(false);
    T factor = 1, lse = 0;
    Row made;
    if constexpr (kOnePass) {
      fold(true);
      made = folded(factor);
      lse = Normaliser::lse(made);
    } else {
      made = solved(lse);
      each_seen([&](const Place& p, const Scored& scored, const Features&) {
        const T weight = weight_of(a, head, scored.e, made, p.ordinal);
        const T kept = weight == 0 ? T(0) : weight * dropout_factor(a, data.random, p.j);
        Modifiers::weigh(a.modifier, p, kept, DistanceSums{});
        add_value(p.j, kept);
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
  each_warp(static_cast<Whole>(a.queries) * a.heads, [&](Whole n) {
    GraphForward{{a, s, static_cast<int>(n % a.heads), static_cast<int>(n / a.heads), 0, {}, {}}}
        .run();
  });
}
