// The gradients of keys and values on tiles: summed by the block that owns a tile of keys, over the
// heads that share them and the queries that see them.
#pragma once

namespace fovea::cuda {

struct KeyGradient {
  const Arguments& a;
  Tiles& tiles;
  Sequence s;
  int key_head, key, feature, column;
  T values[kPer][kValueColumns] = {};
  T sums[kPer][kQueryColumns][Score::kComponents] = {};

  struct Sink {
    void score(int, T) {}
    void slope(int, T) {}
    void distance(void*, const Change&, const Place&, T) {}
  };

  void add_tile(const Rectangle& at) {
    Gradient<false> gradient{a, tiles};
    gradient.start_rows(s, at.head, at.row, true);
    T weights[kPer][kPer] = {}, g[kPer][kPer] = {};
    gradient.each_weight(at, [&](int r, int n, const Place& p, const Scored& scored,
                                 const RowData& data, T weight, T factor, T da) {
      weights[r][n] = factor == 0 ? T(0) : factor * weight;
      T de = gradient_of(a, at.head, weight, da, scored.e, data);
      de = Modifiers::backward(a.modifier, p, scored.steps, de, 0, Sink{});
      if constexpr (!Score::kDirect) {
        T x = Score::slope(a, scored.sum, data.inverse, de);
        g[r][n] = x;
      }
    });
    gradient.keep_products(weights);
    const auto outputs =
        side_of<Value>(a.d_output, s.batch, at.head, s.first_query + at.row, at.rows);
    sum_rows(tiles, outputs, column, kValueWidth, values);
    if constexpr (!Score::kDirect) {
      gradient.keep_products(g);
      const auto queries =
          side_of<Operand>(a.query, s.batch, at.head, s.first_query + at.row, at.rows);
      const auto keys = side_of<Operand>(a.key, s.batch, key_head, s.first_key + key, at.keys);
      // The weight of a feature is the head's: multiplied in here, since heads may share a key.
      T head_sums[kPer][kQueryColumns][Score::kComponents] = {};
      auto& to = Score::kWeighted ? head_sums : sums;
      gradient.sum_terms(
          keys, queries, feature, to,
          [&](int, int, T x, const T* k, const T* q, T* into) { Score::key_terms(x, q, k, into); });
      if constexpr (Score::kWeighted) {
        for (int c = 0; c < kQueryColumns; ++c) {
          const int f = feature + member() + c * kSide;
          const T w = f < kFeatures ? element<T>(a.weight, 0, at.head, 0, f) : T(0);
          for (int r = 0; r < kPer; ++r)
            for (int part = 0; part < Score::kComponents; ++part)
              sums[r][c][part] += w * head_sums[r][c][part];
        }
      }
    }
  }

  void run() {
    const int shared = a.heads / a.key_heads;
    for (int head = key_head * shared; head < (key_head + 1) * shared; ++head) {
      int first, end;
      row_range(a, s, head, key, kTile, first, end);
      for (int row = first / kTile * kTile; row < end; row += kTile) {
        Rectangle at;
        if (rectangle_of(a, s, head, row, key, at)) add_tile(at);
      }
    }
    const int keys = all_keys();
    for (int r = 0; r < kPer; ++r) {
      const int j = key + group() * kPer + r;
      if (j >= keys) continue;
      if (a.d_value.data) {
        Value* out = row_of<Value>(a.d_value, s.batch, key_head, s.first_key + j);
        for (int c = 0; c < kValueColumns; ++c) {
          const int at = column + member() + c * kSide;
          if (at < kValueWidth) narrow(values[r][c], out[at]);
        }
      }
      if constexpr (!Score::kDirect) {
        if (a.d_key.data) {
          Operand* out = row_of<Operand>(a.d_key, s.batch, key_head, s.first_key + j);
          for (int c = 0; c < kQueryColumns; ++c) {
            const int f = feature + member() + c * kSide;
            if (f >= kFeatures) continue;
            for (int part = 0; part < Score::kComponents; ++part)
              narrow(sums[r][c][part], out[part * kFeatures + f]);
          }
        }
      }
    }
  }
  // Those beyond the length have gradients too: 0.
  int all_keys() const {
    return a.key_offsets ? a.key_offsets[s.batch + 1] - a.key_offsets[s.batch] : a.keys;
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(256)
    fovea_gradient_key(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  __shared__ Tiles tiles;
  const int key_tiles = (a.keys + kTile - 1) / kTile;
  const Whole work = static_cast<Whole>(a.batches) * a.key_heads * key_tiles;
  for (Whole n = blockIdx.x; n < work; n += gridDim.x) {
    const int tile = static_cast<int>(n % key_tiles);
    const int key_head = static_cast<int>(n / key_tiles % a.key_heads);
    const Sequence s = sequence_of(a, static_cast<int>(n / key_tiles / a.key_heads));
    KeyGradient{a,
                tiles,
                s,
                key_head,
                tile * kTile,
                static_cast<int>(blockIdx.y) * kFeatureChunk,
                static_cast<int>(blockIdx.y) * kChunk}
        .run();
  }
}
