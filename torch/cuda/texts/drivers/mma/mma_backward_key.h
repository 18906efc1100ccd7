// The gradients of key and value on tensor cores, after the query's.
#pragma once

namespace fovea::cuda {

// Keys own their sums, two for each, so that a warp has room for few; queries come kQueries at a
// time, and are computed kQueryStep at a time.
constexpr int kOwnKeys = kMmaWarps * 16 * kKeyM;

struct alignas(16) TwoNumbers {
  RowNumbers of[2];
};

struct alignas(kAligned) MmaKeyShared {
  Stored keys[kOwnKeys * kPitch], values[kOwnKeys * kValuePitch];
  Stored queries[kPlaces][kQueries * kPitch], outputs[kPlaces][kQueries * kValuePitch];
  alignas(16) RowNumbers numbers[kPlaces][kQueries];
  unsigned long long random[kDropout ? kQueries : 1];
  int bad[kQueries];
  unsigned char covers[kThreads];
};
static_assert(sizeof(MmaKeyShared) <= kSharedBytes);

struct MmaKeyGradient {
  const Arguments& a;
  MmaKeyShared& shared;
  Sequence s;
  int key_head, key;
  float sums[kKeyM][kWidth / 8][4] = {}, values[kKeyM][kValueWidth / 8][4] = {};
  Covers covers;

  struct Sink {
    void score(int, T) {}
    void slope(int, T) {}
    void distance(void*, const Change&, const Place&, T) {}
  };

  // The next tile of queries, over the heads that share the key, or beyond the last head.
  void next(int& head, int& row, Rectangle& at) {
    const int last = (key_head + 1) * (a.heads / a.key_heads);
    for (; head < last; ++head, row = 0) {
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
    copy_rows<kQueries, kValueWidth>(shared.outputs[buffer], a.d_output, s.batch, head,
                                     s.first_query + row, count);
    for (int r = threadIdx.x; r < least(kQueries, count); r += kThreads)
      copy_8(&shared.numbers[buffer][r],
             static_cast<const RowNumbers*>(a.delta) + row_index(a, s, head, row + r), true);
    for (int r = most(0, count) + threadIdx.x; r < kQueries; r += kThreads)
      shared.numbers[buffer][r] = {infinity_of(T()), 0};
  }

  FOVEA_INLINE void add_step(const Rectangle& at, bool has_bad, int buffer, int first) {
    Stored* const queries = shared.queries[buffer];
    Stored* const outputs = shared.outputs[buffer];
    const int own_first = warp() * kKeyM * 16;
    float g[kKeyM][kQueryStep / 8][4], d[kKeyM][kQueryStep / 8][4];
    multiply_rows<kKeyM, kQueryStep, kWidth, kOwnKeys, kQueries>(shared.keys, own_first, queries,
                                                                 first, g);
    multiply_rows<kKeyM, kQueryStep, kValueWidth, kOwnKeys, kQueries>(shared.values, own_first,
                                                                      outputs, first, d);
    const Mask<false> mask(a, s, at, warp() * kKeyM * 16 + lane() / 4);
    Seen<kKeyM, kQueryStep> visible;
    visible.look(a, mask);
    Given<kKeyM, kQueryStep> given;
    given.read(a, mask);
    const auto* const numbers =
        reinterpret_cast<const TwoNumbers*>(shared.numbers[buffer] + first + lane() % 4 * 2);
    const auto number = [&](int, int n, int c) { return numbers[n * 4].of[c % 2]; };
    const auto sink = [](int, int) { return Sink{}; };
    const Whole row = s.first_query + at.row;
    Word weights[kQueryStep / 16][4], gradients[kQueryStep / 16][4];
    if constexpr (kSplits) {
      wait_for<1>(g[0]);
      pair_weights(a, mask, visible, given, g, number);
      finish_first(g[0]);
      wait_for<0>(d[0]);
      pack_all<kQueryStep>(g[0], weights);
      weight_gradients(a, mask, g, d, number, sink);
    } else {
      const auto random = [&](int m, int n, int c) {
        return shared.random[first + mask.row(m, n, c)];
      };
      wait_products(g, d);
      if (at.whole)
        pair_gradients<true, false, kKeyM, kQueryStep>(a, mask, visible, given, g, d, number,
                                                       random, sink);
      else
        pair_gradients<false, false, kKeyM, kQueryStep>(a, mask, visible, given, g, d, number,
                                                        random, sink);
      if constexpr (kPanels) pack_all<kQueryStep>(d[0], weights);
    }
    if constexpr (kPanels) {  // the sums come while the next scores do
      pack_all<kQueryStep>(g[0], gradients);
      multiply_seen<kQueryStep, kValueWidth, kQueries>(has_bad, weights, outputs, first, a.d_output,
                                                       s.batch, at.head, row, shared.bad,
                                                       values[0]);
      multiply_seen<kQueryStep, kWidth, kQueries>(has_bad, gradients, queries, first, a.query,
                                                  s.batch, at.head, row, shared.bad, sums[0]);
    } else {
      multiply_seen<kKeyM, kQueryStep, kValueWidth, kQueries>(
          has_bad, d, outputs, first, a.d_output, s.batch, at.head, row, shared.bad, values);
      multiply_seen<kKeyM, kQueryStep, kWidth, kQueries>(has_bad, g, queries, first, a.query,
                                                         s.batch, at.head, row, shared.bad, sums);
    }
  }

  FOVEA_INLINE void add_tile(const Rectangle& at, int buffer) {
    const bool has_bad =
        !at.whole && __syncthreads_or(finds_bad<kQueries, kValueWidth>(shared.outputs[buffer]) ||
                                      finds_bad<kQueries, kWidth>(shared.queries[buffer]));
#pragma unroll 1
    for (int r = 0; r < kQueries; r += kQueryStep) {
      Rectangle part;
      if (part_of(a, s, at, r, kQueryStep, 0, kOwnKeys, part))
        add_step(part, has_bad, buffer, r);
      else
        wait_products(values, sums);  // as a step does, before its place comes again
    }
    if constexpr (kPlaces == 2) wait_products(values, sums);
  }

  FOVEA_INLINE void run() {
    __syncthreads();
    copy_rows<kOwnKeys, kWidth>(shared.keys, a.key, s.batch, key_head, s.first_key + key,
                                s.keys - key);
    copy_rows<kOwnKeys, kValueWidth>(shared.values, a.value, s.batch, key_head, s.first_key + key,
                                     s.keys - key);
    const int shares = a.heads / a.key_heads, last = (key_head + 1) * shares;
    covers.kept = shared.covers;
    Rectangle at, after;
    int head = key_head * shares, row = 0, buffer = 0;
    next(head, row, at);
    if (head < last) copy(head, row, buffer);
    while (head < last) {
      int following = head, following_row = row + kQueries;
      next(following, following_row, after);
      end_copies();
      __syncthreads();
      const int spare = next_place(buffer);
      if (following < last) copy(following, following_row, spare);
      if constexpr (kDropout) {
        for (int r = threadIdx.x; r < at.rows; r += kThreads)
          shared.random[r] = row_data(a, s, head, at.row + r).random;
        __syncthreads();
      }
      add_tile(at, buffer);
      buffer = spare;
      head = following;
      row = following_row;
      at = after;
    }
    wait_copies();
    wait_products(values, sums);
    const int all = a.key_offsets ? a.key_offsets[s.batch + 1] - a.key_offsets[s.batch] : a.keys;
    const int count = least(kOwnKeys, all - key);
    float factors[kKeyM][2], ones[kKeyM][2];
    for (int m = 0; m < kKeyM; ++m) {
      factors[m][0] = factors[m][1] = static_cast<float>(a.scale);
      ones[m][0] = ones[m][1] = 1;
    }
    if (a.d_value.data)
      write_rows<kKeyM, kValueWidth>(a.d_value, s.batch, key_head, s.first_key + key, count, values,
                                     ones);
    if (a.d_key.data)
      write_rows<kKeyM, kWidth>(a.d_key, s.batch, key_head, s.first_key + key, count, sums,
                                factors);
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(fovea::cuda::kThreads, fovea::cuda::kKeyResident)
    fovea_gradient_key(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<MmaKeyShared*>(bytes);
  const int key_tiles = (a.keys + kOwnKeys - 1) / kOwnKeys;
  const Whole work = static_cast<Whole>(a.batches) * a.key_heads * key_tiles;
  for (Whole n = blockIdx.x; n < work; n += gridDim.x) {
    const int tile = static_cast<int>(n % key_tiles);
    const int of = static_cast<int>(n / key_tiles);  // as in each_query_tile
    const int key_head = Modifiers::kReads ? of / a.batches : of % a.key_heads;
    const Sequence s = sequence_of(a, Modifiers::kReads ? of % a.batches : of / a.key_heads);
    MmaKeyGradient{a, shared, s, key_head, tile * kOwnKeys}.run();
  }
}
