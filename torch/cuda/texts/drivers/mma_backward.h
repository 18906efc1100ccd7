// Backward on tensor cores: as backward.h, queries own their gradients and keys theirs.
#pragma once

namespace fovea::cuda {

constexpr int kM = 1, kOwn = kMmaWarps * 16 * kM;
constexpr int kKeys = 64,
              kQueries = kWidth > 64 || kValueWidth > 64 ? 32 : 64;  // of the other side

struct MmaQueryShared {
  Stored queries[kOwn * kPitch], outputs[kOwn * kValuePitch];
  Stored keys[2][kKeys * kPitch], values[2][kKeys * kValuePitch];
  RowData rows[kOwn];
  int bad[kKeys];
};
struct MmaKeyShared {
  Stored keys[kOwn * kPitch], values[kOwn * kValuePitch];
  Stored queries[2][kQueries * kPitch], outputs[2][kQueries * kValuePitch];
  RowData rows[kQueries];
  int bad[kQueries];
};
static_assert(sizeof(MmaQueryShared) <= kSharedBytes && sizeof(MmaKeyShared) <= kSharedBytes);

// Weight, gradient of the weight and of the score, of a pair.
struct PairGradient {
  float weight, da, de;
};
inline PairGradient pair_gradient(const Arguments& a, int head, const Place& p,
                                  const Scored& scored, const RowData& data, float product) {
  const float factor = dropout_factor(a, data.random, p.j);
  const float weight = weight_of(a, head, scored.e, data.row, p.ordinal);
  const float da = factor == 0 ? 0 : factor * product;
  return {factor == 0 ? 0 : factor * weight, da, gradient_of(a, head, weight, da, scored.e, data)};
}

struct MmaQueryGradient {
  const Arguments& a;
  MmaQueryShared& shared;
  Sequence s;
  int head, row;
  float sums[kM][kWidth / 8][4] = {};
  float slots[2][kSlots] = {};

  struct Sink {
    float* slots;
    void score(int, T) {}
    void slope(int n, T x) { slots[kFirstChange + n] += x; }
    void distance(void*, const Change&, const Place&, T) {}
  };

  int next(int key, Rectangle& at) const {
    for (; key < s.keys; key += kKeys)
      if (rectangle_of(a, s, head, row, kOwn, key, kKeys, at)) break;
    return key;
  }
  void copy(int key, int buffer) {
    const int key_head = head / (a.heads / a.key_heads);
    copy_rows<kKeys, kWidth>(shared.keys[buffer], a.key, s.batch, key_head, s.first_key + key,
                             s.keys - key);
    copy_rows<kKeys, kValueWidth>(shared.values[buffer], a.value, s.batch, key_head,
                                  s.first_key + key, s.keys - key);
  }

  void add_tile(const Rectangle& at, int buffer) {
    float scores[kM][kKeys / 8][4], products[kM][kKeys / 8][4], g[kM][kKeys / 8][4] = {};
    multiply_rows<kM, kKeys, kWidth>(shared.queries, shared.keys[buffer], scores);
    multiply_rows<kM, kKeys, kValueWidth>(shared.outputs, shared.values[buffer], products);
    each_seen<true, kM, kKeys>(
        a, at, shared.rows, scores,
        [&](int m, int n, int c, const Place& p, const Scored& scored, const RowData& data) {
          const auto of = pair_gradient(a, head, p, scored, data, products[m][n][c]);
          const float de =
              Modifiers::backward(a.modifier, p, scored.steps, of.de, 0, Sink{slots[c / 2]});
          g[m][n][c] = Score::slope(a, scored.sum, 1, de);
        });
    if (at.whole)
      multiply_columns<kM, kKeys, kWidth>(g, shared.keys[buffer], sums);
    else
      multiply_seen<kM, kKeys, kWidth>(g, shared.keys[buffer], a.key, s.batch, at.key_head,
                                       s.first_key + at.key, shared.bad, sums);
  }

  void run() {
    __syncthreads();
    const int count = least(kOwn, s.queries - row);
    copy_rows<kOwn, kWidth>(shared.queries, a.query, s.batch, head, s.first_query + row, count);
    copy_rows<kOwn, kValueWidth>(shared.outputs, a.d_output, s.batch, head, s.first_query + row,
                                 count);
    for (int r = warp(); r < count; r += kMmaWarps) {
      const Stored* d_output = row_of<Stored>(a.d_output, s.batch, head, s.first_query + row + r);
      const Stored* output = row_of<Stored>(a.output, s.batch, head, s.first_query + row + r);
      float delta = 0;
      if constexpr (Normaliser::kDelta == Delta::kFromOutput)
        for (int c = lane(); c < kValueWidth; c += kWarp)
          delta += widen(d_output[c]) * widen(output[c]);
      delta = lanes_sum(delta);
      if (lane() == 0) {
        const Whole index = row_index(a, s, head, row + r);
        RowData data = row_data(a, s, head, row + r);
        read_statistics(a, index, data);
        data.delta = delta;
        shared.rows[r] = data;
        static_cast<T*>(a.delta)[index] = delta;
      }
    }
    Rectangle at, after;
    int key = next(0, at), buffer = 0;
    if (key < s.keys) copy(key, buffer);
    while (key < s.keys) {
      const int following = next(key + kKeys, after);
      wait_copies();
      __syncthreads();
      if (following < s.keys) copy(following, buffer ^ 1);
      add_tile(at, buffer);
      buffer ^= 1;
      key = following;
      at = after;
    }
    wait_copies();
    __syncthreads();
    const float factors[kM][2] = {{1, 1}};
    write_rows<kM, kWidth>(a.d_query, s.batch, head, s.first_query + row, count, sums, factors);
    write_slots(count);
  }

  void write_slots(int count) {
    for (int half = 0; half < 2; ++half) {
      const int r = warp() * 16 + lane() / 4 + half * 8;
      for (int n = 0; n < kSlots; ++n) {
        float x = lanes_sum<4>(slots[half][n]);
        if (lane() % 4 != 0 || r >= count) continue;
        const RowData& data = shared.rows[r];
        if (n == kParameterSlot && Normaliser::kParameter) {
          x = Normaliser::parameter_gradient(a, head, data.row, data.delta, data.d_lse);
          if (data.row.state == kSpoiled) x = nan_of(T());
          if (data.row.state == kEmpty) x = 0;
        }
        static_cast<T*>(a.row_gradients)[n * a.rows + row_index(a, s, head, row + r)] = x;
      }
    }
  }
};

struct MmaKeyGradient {
  const Arguments& a;
  MmaKeyShared& shared;
  Sequence s;
  int key_head, key;
  float sums[kM][kWidth / 8][4] = {}, values[kM][kValueWidth / 8][4] = {};

  struct Sink {
    void score(int, T) {}
    void slope(int, T) {}
    void distance(void*, const Change&, const Place&, T) {}
  };

  // The next tile of queries, over the heads that share the key, or beyond the last head.
  void next(int& head, int& row, Rectangle& at) const {
    const int last = (key_head + 1) * (a.heads / a.key_heads);
    for (; head < last; ++head, row = 0) {
      for (; row < s.queries; row += kQueries)
        if (rectangle_of(a, s, head, row, kQueries, key, kOwn, at)) return;
    }
  }
  void copy(int head, int row, int buffer) {
    copy_rows<kQueries, kWidth>(shared.queries[buffer], a.query, s.batch, head, s.first_query + row,
                                s.queries - row);
    copy_rows<kQueries, kValueWidth>(shared.outputs[buffer], a.d_output, s.batch, head,
                                     s.first_query + row, s.queries - row);
  }

  void add_tile(const Rectangle& at, int buffer) {
    float scores[kM][kQueries / 8][4], products[kM][kQueries / 8][4];
    float weights[kM][kQueries / 8][4] = {}, g[kM][kQueries / 8][4] = {};
    multiply_rows<kM, kQueries, kWidth>(shared.keys, shared.queries[buffer], scores);
    multiply_rows<kM, kQueries, kValueWidth>(shared.values, shared.outputs[buffer], products);
    each_seen<false, kM, kQueries>(
        a, at, shared.rows, scores,
        [&](int m, int n, int c, const Place& p, const Scored& scored, const RowData& data) {
          const auto of = pair_gradient(a, at.head, p, scored, data, products[m][n][c]);
          weights[m][n][c] = of.weight;
          const float de = Modifiers::backward(a.modifier, p, scored.steps, of.de, 0, Sink{});
          g[m][n][c] = Score::slope(a, scored.sum, 1, de);
        });
    const Whole first = s.first_query + at.row;
    if (at.whole) {
      multiply_columns<kM, kQueries, kValueWidth>(weights, shared.outputs[buffer], values);
      multiply_columns<kM, kQueries, kWidth>(g, shared.queries[buffer], sums);
    } else {
      multiply_seen<kM, kQueries, kValueWidth>(weights, shared.outputs[buffer], a.d_output, s.batch,
                                               at.head, first, shared.bad, values);
      __syncthreads();
      multiply_seen<kM, kQueries, kWidth>(g, shared.queries[buffer], a.query, s.batch, at.head,
                                          first, shared.bad, sums);
    }
  }

  void run() {
    __syncthreads();
    copy_rows<kOwn, kWidth>(shared.keys, a.key, s.batch, key_head, s.first_key + key, s.keys - key);
    copy_rows<kOwn, kValueWidth>(shared.values, a.value, s.batch, key_head, s.first_key + key,
                                 s.keys - key);
    const int shares = a.heads / a.key_heads, last = (key_head + 1) * shares;
    Rectangle at, after;
    int head = key_head * shares, row = 0, buffer = 0;
    next(head, row, at);
    if (head < last) copy(head, row, buffer);
    while (head < last) {
      int following = head, following_row = row + kQueries;
      next(following, following_row, after);
      wait_copies();
      __syncthreads();
      if (following < last) copy(following, following_row, buffer ^ 1);
      for (int r = threadIdx.x; r < at.rows; r += kThreads) {
        const Whole index = row_index(a, s, head, at.row + r);
        RowData data = row_data(a, s, head, at.row + r);
        read_statistics(a, index, data);
        data.delta = static_cast<const T*>(a.delta)[index];
        shared.rows[r] = data;
      }
      __syncthreads();
      add_tile(at, buffer);
      buffer ^= 1;
      head = following;
      row = following_row;
      at = after;
    }
    wait_copies();
    const int all = a.key_offsets ? a.key_offsets[s.batch + 1] - a.key_offsets[s.batch] : a.keys;
    const int count = least(kOwn, all - key);
    const float factors[kM][2] = {{1, 1}};
    if (a.d_value.data)
      write_rows<kM, kValueWidth>(a.d_value, s.batch, key_head, s.first_key + key, count, values,
                                  factors);
    if (a.d_key.data)
      write_rows<kM, kWidth>(a.d_key, s.batch, key_head, s.first_key + key, count, sums, factors);
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(128)
    fovea_gradient_query(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<MmaQueryShared*>(bytes);
  const int query_tiles = (a.queries + kOwn - 1) / kOwn;
  const Whole work = static_cast<Whole>(a.batches) * a.heads * query_tiles;
  for (Whole n = blockIdx.x; n < work; n += gridDim.x) {
    const int tile = query_tiles - 1 - static_cast<int>(n % query_tiles);
    const int head = static_cast<int>(n / query_tiles % a.heads);
    const Sequence s = sequence_of(a, static_cast<int>(n / query_tiles / a.heads));
    if (tile * kOwn >= s.queries) continue;
    MmaQueryGradient{a, shared, s, head, tile * kOwn}.run();
  }
}

extern "C" __global__ void __launch_bounds__(128)
    fovea_gradient_key(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<MmaKeyShared*>(bytes);
  const int key_tiles = (a.keys + kOwn - 1) / kOwn;
  const Whole work = static_cast<Whole>(a.batches) * a.key_heads * key_tiles;
  for (Whole n = blockIdx.x; n < work; n += gridDim.x) {
    const int tile = static_cast<int>(n % key_tiles);
    const int key_head = static_cast<int>(n / key_tiles % a.key_heads);
    const Sequence s = sequence_of(a, static_cast<int>(n / key_tiles / a.key_heads));
    MmaKeyGradient{a, shared, s, key_head, tile * kOwn}.run();
  }
}
