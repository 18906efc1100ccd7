// The gradient of a bias that broadcasts to [B, H, L, S]: a block owns a tile of the bias and sums
// over all pairs that read it, in order.
#pragma once

namespace fovea::cuda {

struct BiasGradient {
  const Arguments& a;
  Tiles& tiles;
  T sums[kPer][kPer] = {};

  struct Sink {
    int wanted;
    T found = 0;
    void score(int n, T de) {
      if (n == wanted) found = de;
    }
    void slope(int, T) {}
    void distance(void*, const Change&, const Place&, T) {}
  };

  void add_tile(const Rectangle& at) {
    Gradient<true> gradient{a, tiles};
    gradient.start_rows(at.s, at.head, at.row, true);
    gradient.each_weight(at, [&](int r, int n, const Place& p, const Scored& scored,
                                 const RowData& data, T weight, T, T da) {
      Sink sink{a.d_bias_of};
      const T de = gradient_of(a, at.head, weight, da, scored.e, data);
      Modifiers::backward(a.modifier, p, scored.steps, de, 0, sink);
      sums[r][n] += sink.found;
    });
  }
  bool broadcasts(int dimension) const { return a.d_bias_stride[dimension] == 0; }

  void run(int batch, int head, int query_tile, int key_tile) {
    const int last_batch = broadcasts(0) ? a.batches : batch + 1,
              last_head = broadcasts(1) ? a.heads : head + 1;
    for (int b = batch; b < last_batch; ++b) {
      const Sequence s = sequence_of(a, b);
      for (int h = head; h < last_head; ++h) {
        const int rows = broadcasts(2) ? s.queries : least(s.queries, (query_tile + 1) * kTile),
                  keys = broadcasts(3) ? s.keys : least(s.keys, (key_tile + 1) * kTile);
        for (int row = query_tile * kTile; row < rows; row += kTile) {
          for (int key = key_tile * kTile; key < keys; key += kTile) {
            Rectangle at;
            if (rectangle_of(a, s, h, row, key, at)) add_tile(at);
          }
        }
      }
    }
    __syncthreads();
    for (int r = 0; r < kPer; ++r)
      for (int n = 0; n < kPer; ++n)
        tiles.products[group() * kPer + r][member() * kPer + n] = sums[r][n];
    __syncthreads();
    write(batch, head, query_tile * kTile, key_tile * kTile);
  }

  // Rows or columns that the bias shares become one.
  void write(int batch, int head, int row, int key) {
    T* out = static_cast<T*>(a.d_bias) + batch * a.d_bias_stride[0] + head * a.d_bias_stride[1];
    const int rows = broadcasts(2) ? 1 : least(kTile, a.d_bias_rows - row),
              keys = broadcasts(3) ? 1 : least(kTile, a.d_bias_columns - key);
    for (int n = threadIdx.x; n < rows * keys; n += kThreads) {
      const int r = n / keys, c = n % keys;
      T sum = 0;
      for (int i = broadcasts(2) ? 0 : r; i < (broadcasts(2) ? kTile : r + 1); ++i)
        for (int j = broadcasts(3) ? 0 : c; j < (broadcasts(3) ? kTile : c + 1); ++j)
          sum += tiles.products[i][j];
      out[(row + r) * a.d_bias_stride[2] + (key + c) * a.d_bias_stride[3]] = sum;
    }
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(256)
    fovea_gradient_bias(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  __shared__ Tiles tiles;
  const auto count = [&](int dimension, int n) { return a.d_bias_stride[dimension] ? n : 1; };
  const int query_tiles = count(2, (a.d_bias_rows + kTile - 1) / kTile),
            key_tiles = count(3, (a.d_bias_columns + kTile - 1) / kTile), heads = count(1, a.heads);
  const Whole work = static_cast<Whole>(count(0, a.batches)) * heads * query_tiles * key_tiles;
  for (Whole n = blockIdx.x; n < work; n += gridDim.x) {
    const Whole rest = n / key_tiles / query_tiles;
    BiasGradient{a, tiles}.run(static_cast<int>(rest / heads), static_cast<int>(rest % heads),
                               static_cast<int>(n / key_tiles % query_tiles),
                               static_cast<int>(n % key_tiles));
  }
}
