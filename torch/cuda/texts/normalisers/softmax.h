// a = exp(e) / (sum exp(e) + exp(sink)). Online: Milakov & Gimelshein 2018, algorithm 3.
// kSink: whether there is a sink.
#pragma once

namespace fovea::cuda {

template <bool kSink>
struct SoftmaxOf : PlainNormaliser {
  static constexpr bool kShifts = true, kParameter = kSink;
  static constexpr Delta kDelta = Delta::kFromOutput;
  static T power(T e, T shift) { return exponential(e - shift); }
  static constexpr T kUnit = T(kLog2OfE);
  static T base(T shift, T unit) { return shift == -infinity_of(T()) ? T(0) : shift * unit; }
  static T power_at(T x, T unit, T base) { return power_of_two(x * unit - base); }
  static T level(const Row& row) { return kUnit * (row.shift - logarithm(row.scale)); }
  static T less(T delta, T d_lse) { return delta - d_lse; }
  static T gradient_at(T weight, T da, T less) { return weight * (da - less); }
  static Row finish(const Arguments& a, int head, T shift, T sum, T) {
    if constexpr (kSink) {
      const T sink = head_number(a, head), top = larger(shift, sink);
      sum = sum * exponential(shift - top) + exponential(sink - top);
      shift = top;
    }
    return {shift, 1 / sum, 0, kSeen};
  }
  static T factor(T shift, const Row& row) { return exponential(shift - row.shift) * row.scale; }
  static T weight(const Arguments&, int, T e, const Row& row, int) {
    return exponential(e - row.shift) * row.scale;
  }
  static T lse(const Row& row) { return row.shift - logarithm(row.scale); }
  static T gradient(const Arguments&, int, T weight, T da, T, const Row&, T delta, T d_lse) {
    return weight * (da - delta + d_lse);
  }
  static T parameter_gradient(const Arguments& a, int head, const Row& row, T delta, T d_lse) {
    return exponential(head_number(a, head) - row.shift) * row.scale * (d_lse - delta);
  }
};
using Softmax = SoftmaxOf<false>;
using SoftmaxWithSink = SoftmaxOf<true>;

}  // namespace fovea::cuda
