// The gradients of keys and values on panels: summed by the block that owns kOwn keys, over the heads
// that share them and the queries that see them.
#pragma once

namespace fovea::cuda {

struct KeyGradient {
  const Arguments& a;
  Panels<2>& panels;
  Sequence s;
  int key_head, key;
  Gradient<false> gradient{a, panels};
  T values[kPerOwn][kColumns] = {}, sums[kPerOwn][kColumns] = {};

  struct Sink {
    void score(int, T) {}
    void slope(int, T) {}
    void distance(void*, const Change&, const Place&, T) {}
  };

  FOVEA_INLINE void add_tile(const Rectangle& at) {
    __syncthreads();
    stage<kOther, kWidth>(gradient.queries(s, at.head, at.row), panels.other[0]);
    stage<kOther, kValueWidth>(gradient.outputs(s, at.head, at.row), panels.other[1]);
    gradient.start_rows(s, at.head, at.row, true);
    gradient.wait();
    T weights[kPerOwn][kPerOther] = {}, g[kPerOwn][kPerOther] = {};
    gradient.each_weight(at, [&](int r, int n, const Place& p, const Scored& scored,
                                 const RowData& data, T weight, T factor, T da) {
      weights[r][n] = factor == 0 ? T(0) : factor * weight;
      T de = gradient_of(a, at.head, weight, da, scored.e, data);
      de = Modifiers::backward(a.modifier, p, scored.steps, de, 0, Sink{});
      g[r][n] = Score::slope(a, scored.sum, data.inverse, de);
    });
    gradient.add(weights, panels.other[1], values);
    gradient.add(g, panels.other[0], sums);
  }

  void write(const Rows& rows, int width, const T (&x)[kPerOwn][kColumns]) {
    if (!rows.data) return;
    // Those beyond the length have gradients too: 0.
    const int keys = a.key_offsets ? a.key_offsets[s.batch + 1] - a.key_offsets[s.batch] : a.keys;
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
      if (key + own_row(r) >= keys) continue;
      T* out = row_of<T>(rows, s.batch, key_head, s.first_key + key + own_row(r));
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        if (column_of(c) < width) out[column_of(c)] = x[r][c];
    }
  }

  void run() {
    __syncthreads();
    stage<kOwn, kWidth>(gradient.keys(s, key_head, key), panels.own[0]);
    stage<kOwn, kValueWidth>(gradient.values(s, key_head, key), panels.own[1]);
    const int shared = a.heads / a.key_heads;
    for (int head = key_head * shared; head < (key_head + 1) * shared; ++head) {
      int first, end;
      row_range(a, s, head, key, kOwn, first, end);
      for (int row = first / kOther * kOther; row < end; row += kOther) {
        Rectangle at;
        if (rectangle_of(a, s, head, row, kOther, key, kOwn, at)) add_tile(at);
      }
    }
    write(a.d_value, kValueWidth, values);
    write(a.d_key, kWidth, sums);
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(fovea::cuda::kThreads, fovea::cuda::kResident)
    fovea_gradient_key(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(shared);
  auto& panels = *reinterpret_cast<Panels<2>*>(shared);
  const int key_tiles = (a.keys + kOwn - 1) / kOwn;
  const Whole work = static_cast<Whole>(a.batches) * a.key_heads * key_tiles;
  for (Whole n = blockIdx.x; n < work; n += gridDim.x) {
    const int tile = static_cast<int>(n % key_tiles);
    const int key_head = static_cast<int>(n / key_tiles % a.key_heads);
    const Sequence s = sequence_of(a, static_cast<int>(n / key_tiles / a.key_heads));
    KeyGradient{a, panels, s, key_head, tile * kOwn}.run();
  }
}
