// Forward on tensor cores, one tile of keys after another.
#pragma once

namespace fovea::cuda {

struct MmaForward : MmaRows {
  // Each lane looks at its own numbers; the lanes of a row meet only where one of the warp is late.
  FOVEA_INLINE void shift_rows(const float (&x)[kM][kOther / 8][4]) {
    float top[kM][2];
    bool is_late = false;
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        top[m][half] = shift[m][half];
#pragma unroll
        for (int n = 0; n < kOther / 8; ++n)
          top[m][half] = larger(top[m][half], larger(x[m][n][2 * half], x[m][n][2 * half + 1]));
        is_late |= (top[m][half] - shift[m][half]) * unit > kLate;
      }
    }
    if (!__ballot_sync(~0u, is_late)) return;  // soon always
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) shift_row(m, half, lanes_max<4>(top[m][half]));
  }
  FOVEA_INLINE void shift_row(int m, int half, float top) {
    const bool is_late = (top - shift[m][half]) * unit > kLate;
    const float rescale = is_late ? power_of_two((shift[m][half] - top) * unit) : 1;
    total[m][half] *= rescale;
#pragma unroll
    for (int n = 0; n < kValueWidth / 8; ++n) {
      sums[m][n][2 * half] *= rescale;
      sums[m][n][2 * half + 1] *= rescale;
    }
    shift[m][half] = is_late ? top : shift[m][half];
  }

  FOVEA_INLINE void add_tile(const Rectangle& at, int buffer) {
    float x[kM][kOther / 8][4];
    multiply_rows<kM, kOther, kWidth, kOwn, kOther>(shared.queries, warp() * kM * 16,
                                                    shared.keys[buffer], 0, x);
    const Mask<true> mask(a, s, at, own(0, 0));
    Seen<kM, kOther> visible;
    visible.look(a, mask);
    Given<kM, kOther> given;
    given.read(a, mask);
    wait_products(x);
    score(mask, visible, given, x);
    if constexpr (Normaliser::kShifts) shift_rows(x);
    weigh(at, x);
    const bool has_bad =
        !at.whole && __syncthreads_or(finds_bad<kOther, kValueWidth>(shared.values[buffer]));
    multiply_seen<kM, kOther, kValueWidth, kOther>(has_bad, x, shared.values[buffer], 0, a.value,
                                                   s.batch, key_head, s.first_key + at.key,
                                                   shared.bad, sums);
    wait_products(sums);
  }

  FOVEA_INLINE void run() {
    begin();
    Rectangle at, after;
    int first, end, buffer = 0;
    key_range(a, s, head, row, kOwn, first, end);
    int key = next(first / kOther * kOther, end, at);
    if (key < end) copy(key, buffer);
    while (key < end) {
      const int following = next(key + kOther, end, after);
      end_copies();
      __syncthreads();
      if (following < end) copy(following, buffer ^ 1);
      add_tile(at, buffer);
      buffer ^= 1;
      key = following;
      at = after;
    }
    wait_copies();
    end_rows();
  }
  void copy(int key, int buffer) {
    copy_keys(key, buffer);
    copy_values(key, buffer);
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(fovea::cuda::kThreads, fovea::cuda::kResident)
    fovea_forward(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<MmaShared*>(bytes);
  each_query_tile(a, kOwn, [&](const Sequence& s, int head, int row) {
    MmaForward{{a, shared, s, head, row, key_head_of(a, head)}}.run();
  });
}
