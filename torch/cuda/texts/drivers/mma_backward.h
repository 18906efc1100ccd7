// Backward on tensor cores: as backward.h, queries own their gradients and keys theirs.
#pragma once

namespace fovea::cuda {

// Sums take most registers: two of them for a key leave room for 16 keys of a warp.
constexpr bool kWide = kWidth > 64 || kValueWidth > 64;
constexpr int kQueryM = 2, kOwnQueries = kMmaWarps * 16 * kQueryM, kKeys = kWide ? 32 : 64;
constexpr int kKeyM = 1, kOwnKeys = kMmaWarps * 16 * kKeyM, kQueries = kWide ? 32 : 64;

struct MmaQueryShared {
  Stored queries[kOwnQueries * kPitch], outputs[kOwnQueries * kValuePitch];
  Stored keys[2][kKeys * kPitch], values[2][kKeys * kValuePitch];
  RowData rows[kOwnQueries];
  int bad[kKeys];
};
struct MmaKeyShared {
  Stored keys[kOwnKeys * kPitch], values[kOwnKeys * kValuePitch];
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
  float sums[kQueryM][kWidth / 8][4] = {};
  float slots[kQueryM][2][kSlots] = {};

  struct Sink {
    float* slots;
    bool seen;
    void score(int, T) {}
    void slope(int n, T x) { slots[kFirstChange + n] += seen ? x : 0; }
    void distance(void*, const Change&, const Place&, T) {}
  };

  int next(int key, int end, Rectangle& at) const {
    for (; key < end; key += kKeys)
      if (rectangle_of(a, s, head, row, kOwnQueries, key, kKeys, at)) return key;
    return end;
  }
  void copy(int key, int buffer) {
    const int key_head = key_head_of(a, head);
    copy_rows<kKeys, kWidth>(shared.keys[buffer], a.key, s.batch, key_head, s.first_key + key,
                             s.keys - key);
    copy_rows<kKeys, kValueWidth>(shared.values[buffer], a.value, s.batch, key_head,
                                  s.first_key + key, s.keys - key);
  }

  FOVEA_INLINE void add_tile(const Rectangle& at, int buffer) {
    float g[kQueryM][kKeys / 8][4], products[kQueryM][kKeys / 8][4];
    multiply_rows<kQueryM, kKeys, kWidth>(of_warp<kQueryM, kWidth>(shared.queries),
                                          shared.keys[buffer], g);
    multiply_rows<kQueryM, kKeys, kValueWidth>(of_warp<kQueryM, kValueWidth>(shared.outputs),
                                               shared.values[buffer], products);
    each_pair<true, kQueryM, kKeys>(
        a, s, at, shared.rows, g, 0,
        [&](int m, int n, int c, const Place& p, const Scored& scored, const RowData& data,
            bool seen) {
          const auto of = pair_gradient(a, head, p, scored, data, products[m][n][c]);
          const float de = Modifiers::backward(a.modifier, p, scored.steps, of.de, 0,
                                               Sink{slots[m][c / 2], seen});
          return Score::slope(a, scored.sum, 1, de);
        });
    multiply_seen<kQueryM, kKeys, kWidth>(at.whole, g, shared.keys[buffer], a.key, s.batch,
                                          key_head_of(a, head), s.first_key + at.key, shared.bad,
                                          sums);
  }

  void run() {
    __syncthreads();
    const int count = least(kOwnQueries, s.queries - row);
    copy_rows<kOwnQueries, kWidth>(shared.queries, a.query, s.batch, head, s.first_query + row,
                                   count);
    copy_rows<kOwnQueries, kValueWidth>(shared.outputs, a.d_output, s.batch, head,
                                        s.first_query + row, count);
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
    int first, end, buffer = 0;
    key_range(a, s, head, row, kOwnQueries, first, end);
    int key = next(first / kKeys * kKeys, end, at);
    if (key < end) copy(key, buffer);
    while (key < end) {
      const int following = next(key + kKeys, end, after);
      wait_copies();
      __syncthreads();
      if (following < end) copy(following, buffer ^ 1);
      add_tile(at, buffer);
      buffer ^= 1;
      key = following;
      at = after;
    }
    wait_copies();
    __syncthreads();
    const float factors[kQueryM][2] = {{1, 1}, {1, 1}};
    write_rows<kQueryM, kWidth>(a.d_query, s.batch, head, s.first_query + row, count, sums,
                                factors);
    write_slots(count);
  }

  void write_slots(int count) {
#pragma unroll
    for (int m = 0; m < kQueryM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = (warp() * kQueryM + m) * 16 + lane() / 4 + half * 8;
#pragma unroll
        for (int n = 0; n < kSlots; ++n) {
          float x = lanes_sum<4>(slots[m][half][n]);
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
  }
};

struct MmaKeyGradient {
  const Arguments& a;
  MmaKeyShared& shared;
  Sequence s;
  int key_head, key;
  float sums[kKeyM][kWidth / 8][4] = {}, values[kKeyM][kValueWidth / 8][4] = {};

  struct Sink {
    void score(int, T) {}
    void slope(int, T) {}
    void distance(void*, const Change&, const Place&, T) {}
  };

  // The next tile of queries, over the heads that share the key, or beyond the last head.
  void next(int& head, int& row, Rectangle& at) const {
    const int last = (key_head + 1) * (a.heads / a.key_heads);
    for (; head < last; ++head, row = 0) {
      int first, end;
      row_range(a, s, head, key, kOwnKeys, first, end);
      for (row = most(row, first / kQueries * kQueries); row < end; row += kQueries)
        if (rectangle_of(a, s, head, row, kQueries, key, kOwnKeys, at)) return;
    }
  }
  void copy(int head, int row, int buffer) {
    copy_rows<kQueries, kWidth>(shared.queries[buffer], a.query, s.batch, head, s.first_query + row,
                                s.queries - row);
    copy_rows<kQueries, kValueWidth>(shared.outputs[buffer], a.d_output, s.batch, head,
                                     s.first_query + row, s.queries - row);
  }

  FOVEA_INLINE void add_tile(const Rectangle& at, int buffer) {
    float g[kKeyM][kQueries / 8][4], weights[kKeyM][kQueries / 8][4];
    multiply_rows<kKeyM, kQueries, kWidth>(of_warp<kKeyM, kWidth>(shared.keys),
                                           shared.queries[buffer], g);
    multiply_rows<kKeyM, kQueries, kValueWidth>(of_warp<kKeyM, kValueWidth>(shared.values),
                                                shared.outputs[buffer], weights);
    each_pair<false, kKeyM, kQueries>(
        a, s, at, shared.rows, g, 0,
        [&](int m, int n, int c, const Place& p, const Scored& scored, const RowData& data,
            bool seen) {
          const auto of = pair_gradient(a, at.head, p, scored, data, weights[m][n][c]);
          weights[m][n][c] = seen ? of.weight : 0;
          const float de = Modifiers::backward(a.modifier, p, scored.steps, of.de, 0, Sink{});
          return Score::slope(a, scored.sum, 1, de);
        });
    const Whole first = s.first_query + at.row;
    multiply_seen<kKeyM, kQueries, kValueWidth>(at.whole, weights, shared.outputs[buffer],
                                                a.d_output, s.batch, at.head, first, shared.bad,
                                                values);
    if (!at.whole) __syncthreads();
    multiply_seen<kKeyM, kQueries, kWidth>(at.whole, g, shared.queries[buffer], a.query, s.batch,
                                           at.head, first, shared.bad, sums);
  }

  void run() {
    __syncthreads();
    copy_rows<kOwnKeys, kWidth>(shared.keys, a.key, s.batch, key_head, s.first_key + key,
                                s.keys - key);
    copy_rows<kOwnKeys, kValueWidth>(shared.values, a.value, s.batch, key_head, s.first_key + key,
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
    const int count = least(kOwnKeys, all - key);
    float factors[kKeyM][2];
    for (int m = 0; m < kKeyM; ++m) factors[m][0] = factors[m][1] = 1;
    if (a.d_value.data)
      write_rows<kKeyM, kValueWidth>(a.d_value, s.batch, key_head, s.first_key + key, count, values,
                                     factors);
    if (a.d_key.data)
      write_rows<kKeyM, kWidth>(a.d_key, s.batch, key_head, s.first_key + key, count, sums,
                                factors);
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(128)
    fovea_gradient_query(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<MmaQueryShared*>(bytes);
  each_query_tile(a, kOwnQueries, [&](const Sequence& s, int head, int row) {
    MmaQueryGradient{a, shared, s, head, row}.run();
  });
}

extern "C" __global__ void __launch_bounds__(128)
    fovea_gradient_key(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<MmaKeyShared*>(bytes);
  const int key_tiles = (a.keys + kOwnKeys - 1) / kOwnKeys;
  const Whole work = static_cast<Whole>(a.batches) * a.key_heads * key_tiles;
  for (Whole n = blockIdx.x; n < work; n += gridDim.x) {
    const int tile = static_cast<int>(n % key_tiles);
    const int key_head = static_cast<int>(n / key_tiles % a.key_heads);
    const Sequence s = sequence_of(a, static_cast<int>(n / key_tiles / a.key_heads));
    MmaKeyGradient{a, shared, s, key_head, tile * kOwnKeys}.run();
  }
}
