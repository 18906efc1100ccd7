// The gradients of key and value of the normalisers that look for a threshold, after the query's:
// lists keep the queries that give a key weight. Where they cannot hold them, tensor cores make all
// products of the block.
#pragma once

namespace fovea::cuda {

constexpr int kOwnKeys = kMmaWarps * 16;

struct alignas(kAligned) ThresholdKeyShared {
  Stored keys[kOwnKeys * kPitch];
  Stored queries[2][kQueries * kPitch];
  union {
    Entry entries[kMmaWarps][16 * kListPitch];
    struct {  // where lists do not serve
      Stored values[kOwnKeys * kValuePitch], outputs[kQueries * kValuePitch];
    };
  };
  RowData rows[kQueries];
  int bad[kQueries];
  float bounds[2][kQueries];
  unsigned char covers[kThreads];
};
static_assert(sizeof(ThresholdKeyShared) <= kSharedBytes);

struct ThresholdKeyGradient {
  const Arguments& a;
  ThresholdKeyShared& shared;
  Sequence s;
  int key_head, key, count;
  Covers covers;
  Lists lists;
  bool full = false;  // lists have not served
  float sums[1][kWidth / 8][4], values[1][kValueWidth / 8][4];

  struct Sink {
    void score(int, T) {}
    void slope(int, T) {}
    void distance(void*, const Change&, const Place&, T) {}
  };

  int first_head() const { return key_head * (a.heads / a.key_heads); }
  int end_head() const { return first_head() + a.heads / a.key_heads; }

  // The next tile of queries, over the heads that share the key, or beyond the last head.
  void next(int& head, int& row, Rectangle& at) {
    for (; head < end_head(); ++head, row = 0) {
      int first, end;
      row_range(a, s, head, key, kOwnKeys, first, end);
      for (row = most(row, first / kQueries * kQueries); row < end; row += kQueries)
        if (covers.look(a, s, head, row, kQueries, kQueries, key, kOwnKeys, 0, at)) return;
    }
  }
  void copy(int head, int row, int buffer) {
    const int count = s.queries - row;
    copy_rows<kQueries, kWidth>(shared.queries[buffer], a.query, s.batch, head, s.first_query + row,
                                count);
    for (int r = threadIdx.x; r < kQueries; r += kThreads)
      shared.bounds[buffer][r] =
          r < count
              ? least_score(a, head,
                            static_cast<const Row*>(a.statistics)[row_index(a, s, head, row + r)])
              : infinity_of(T());
  }

  RowData row_of_query(int of, int r) const {
    const Whole index = row_index(a, s, of, r);
    RowData data = row_data(a, s, of, r);
    read_statistics(a, index, data);
    data.delta = static_cast<const float*>(a.delta)[index];
    return data;
  }
  // A pair's weight after dropout and the gradient of its score, given that of the weight.
  FOVEA_INLINE float pair_gradient(int of, int r, int j, const RowData& data, float x,
                                   float product, float& weight) const {
    const Place p{s.batch, of, r, s.position + r, j, j, row_index(a, s, of, r)};
    const Scored scored = score_of(a, p, x, 1);
    weight = scored.seen ? weight_of(a, of, scored.e, data.row, j) : T(0);
    if (weight == 0) return 0;
    const float dropped = dropout_factor(a, data.random, j);
    const float da = dropped == 0 ? 0 : dropped * product;
    const float de = gradient_of(a, of, weight, da, scored.e, data);
    weight = dropped == 0 ? 0 : dropped * weight;
    return Modifiers::backward(a.modifier, p, scored.steps, de, 0, Sink{});
  }

  // ---- from the lists ----

  // An entry's other is a row among those of all heads that share the key.
  FOVEA_INLINE void sum_lists() {
    __syncwarp();
    each_four_rows([&](int r) {
      const int mine = warp() * 16 + r, j = key + mine;
      const bool there = mine < count;
      const Whole of_key = s.first_key + j;
      RowPart<kValueWidth> value;
      value.read(row_of<Stored>(a.value, s.batch, key_head, of_key), there && j < s.keys);
      RowSums<kWidth> key_sums;
      RowSums<kValueWidth> value_sums;
      key_sums.start();
      value_sums.start();
      each_four_entries(lists, r, [&](const Entry(&entries)[4], const bool(&has)[4]) {
#pragma unroll
        for (int pair = 0; pair < 4; pair += 2) {
          RowPart<kValueWidth> outputs[2];
          RowPart<kWidth> queries[2];
          RowData rows[2];
#pragma unroll
          for (int q = 0; q < 2; ++q) {
            const int row = has[pair + q] ? entries[pair + q].other % s.queries : 0,
                      of = first_head() + (has[pair + q] ? entries[pair + q].other / s.queries : 0);
            outputs[q].read(row_of<Stored>(a.d_output, s.batch, of, s.first_query + row),
                            has[pair + q]);
            queries[q].read(row_of<Stored>(a.query, s.batch, of, s.first_query + row),
                            has[pair + q]);
            rows[q] = row_of_query(of, row);
          }
#pragma unroll
          for (int q = 0; q < 2; ++q) {
            const float product = outputs[q].times(value);
            if (!has[pair + q]) continue;
            float weight;
            const int other = entries[pair + q].other;
            const float de = pair_gradient(first_head() + other / s.queries, other % s.queries, j,
                                           rows[q], entries[pair + q].x, product, weight);
            value_sums.add(weight, outputs[q]);
            key_sums.add(de, queries[q]);
          }
        }
      });
      if (!there) return;
      if (a.d_key.data)
        key_sums.write(row_of<Stored>(a.d_key, s.batch, key_head, of_key),
                       static_cast<float>(a.scale));
      if (a.d_value.data) value_sums.write(row_of<Stored>(a.d_value, s.batch, key_head, of_key), 1);
    });
  }
  FOVEA_INLINE void collect_tile(const Rectangle& at, int buffer) {
    float x[1][kQueries / 8][4], e[kQueries / 8][4];
    multiply_rows<1, kQueries, kWidth, kOwnKeys, kQueries>(shared.keys, warp() * 16,
                                                           shared.queries[buffer], 0, x);
    const Mask<false> mask(a, s, at, warp() * 16 + lane() / 4);
    Given<1, kQueries> given;
    given.read(a, mask);
    wait_products(x);
    if (at.whole)
      scores_of<true, false, kQueries>(a, mask, given, x[0], e);
    else
      scores_of<false, false, kQueries>(a, mask, given, x[0], e);
    raise_bad(e);
    const float* const bounds = shared.bounds[buffer] + lane() % 4 * 2;
    lists.collect<kQueries>(
        e, x[0], (at.head - first_head()) * s.queries + at.row,
        [&](int n, int c) { return bounds[n * 8 + c % 2]; },
        [&] {
          full = true;
          lists.count[0] = lists.count[1] = 0;
        });
  }
  // False: keys get weight from more queries than lists hold.
  FOVEA_INLINE bool collect() {
    Rectangle at, after;
    int row = 0, buffer = 0, head = first_head();
    next(head, row, at);
    if (head < end_head()) copy(head, row, buffer);
    while (head < end_head()) {
      int following = head, following_row = row + kQueries;
      next(following, following_row, after);
      end_copies();
      if (__syncthreads_or(full)) break;
      if (following < end_head()) copy(following, following_row, buffer ^ 1);
      collect_tile(at, buffer);
      buffer ^= 1;
      head = following;
      row = following_row;
      at = after;
    }
    wait_copies();
    return !__syncthreads_or(full);
  }

  // ---- from all pairs ----

  FOVEA_INLINE void multiply_step(const Rectangle& at, bool has_bad, int first) {
    float x[1][kQueryStep / 8][4], d[1][kQueryStep / 8][4];
    multiply_rows<1, kQueryStep, kWidth, kOwnKeys, kQueries>(shared.keys, warp() * 16,
                                                             shared.queries[0], first, x);
    multiply_rows<1, kQueryStep, kValueWidth, kOwnKeys, kQueries>(shared.values, warp() * 16,
                                                                  shared.outputs, first, d);
    const Mask<false> mask(a, s, at, warp() * 16 + lane() / 4);
    wait_products(x, d);
#pragma unroll
    for (int n = 0; n < kQueryStep / 8; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int r = n * 8 + lane() % 4 * 2 + c % 2,
                  j = key + warp() * 16 + lane() / 4 + c / 2 * 8;
        const bool seen = r < at.rows && (at.whole || mask.allows(0, n, c));
        float weight = 0;
        x[0][n][c] = seen ? pair_gradient(at.head, at.row + r, j, shared.rows[first + r],
                                          x[0][n][c], d[0][n][c], weight)
                          : 0;
        d[0][n][c] = weight;
      }
    const Whole row = s.first_query + at.row;
    multiply_seen<1, kQueryStep, kValueWidth, kQueries>(
        has_bad, d, shared.outputs, first, a.d_output, s.batch, at.head, row, shared.bad, values);
    multiply_seen<1, kQueryStep, kWidth, kQueries>(has_bad, x, shared.queries[0], first, a.query,
                                                   s.batch, at.head, row, shared.bad, sums);
    wait_products(values, sums);
  }
  FOVEA_INLINE void sum_all() {
    copy_rows<kOwnKeys, kValueWidth>(shared.values, a.value, s.batch, key_head, s.first_key + key,
                                     s.keys - key);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
#pragma unroll
      for (int n = 0; n < kWidth / 8; ++n) sums[0][n][c] = 0;
#pragma unroll
      for (int n = 0; n < kValueWidth / 8; ++n) values[0][n][c] = 0;
    }
    Rectangle at;
    int row = 0, head = first_head();
    for (next(head, row, at); head < end_head(); row += kQueries, next(head, row, at)) {
      __syncthreads();
      copy(head, row, 0);
      copy_rows<kQueries, kValueWidth>(shared.outputs, a.d_output, s.batch, head,
                                       s.first_query + row, s.queries - row);
      for (int r = threadIdx.x; r < at.rows; r += kThreads)
        shared.rows[r] = row_of_query(head, row + r);
      end_copies();
      __syncthreads();
      // A weight of 0 takes nothing from a query that is not finite.
      const bool has_bad = __syncthreads_or(finds_bad<kQueries, kValueWidth>(shared.outputs) ||
                                            finds_bad<kQueries, kWidth>(shared.queries[0]));
#pragma unroll 1
      for (int r = 0; r < kQueries; r += kQueryStep) {
        Rectangle part;
        if (part_of(a, s, at, r, kQueryStep, 0, kOwnKeys, part)) multiply_step(part, has_bad, r);
      }
    }
    const float factors[1][2] = {{static_cast<float>(a.scale), static_cast<float>(a.scale)}},
                ones[1][2] = {{1, 1}};
    if (a.d_value.data)
      write_rows<1, kValueWidth>(a.d_value, s.batch, key_head, s.first_key + key, count, values,
                                 ones);
    if (a.d_key.data)
      write_rows<1, kWidth>(a.d_key, s.batch, key_head, s.first_key + key, count, sums, factors);
  }

  FOVEA_INLINE void run() {
    __syncthreads();
    const int all = a.key_offsets ? a.key_offsets[s.batch + 1] - a.key_offsets[s.batch] : a.keys;
    count = least(kOwnKeys, all - key);
    copy_rows<kOwnKeys, kWidth>(shared.keys, a.key, s.batch, key_head, s.first_key + key,
                                s.keys - key);
    covers.kept = shared.covers;
    lists.entries = shared.entries[warp()];
    if (collect())
      sum_lists();
    else
      sum_all();
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(fovea::cuda::kThreads, fovea::cuda::kKeyResident)
    fovea_gradient_key(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<ThresholdKeyShared*>(bytes);
  const int key_tiles = (a.keys + kOwnKeys - 1) / kOwnKeys;
  const Whole work = static_cast<Whole>(a.batches) * a.key_heads * key_tiles;
  for (Whole n = blockIdx.x; n < work; n += gridDim.x) {
    const int tile = static_cast<int>(n % key_tiles);
    const int key_head = static_cast<int>(n / key_tiles % a.key_heads);
    const Sequence s = sequence_of(a, static_cast<int>(n / key_tiles / a.key_heads));
    ThresholdKeyGradient{a, shared, s, key_head, tile * kOwnKeys}.run();
  }
}
