// The query's gradient of the normalisers that look for a threshold: tensor cores compute the scores
// again, lists keep the keys that have weight, and the gradients are theirs alone. Where rows of a block
// have weight for more keys than lists hold, tensor cores make all products of the block.
#pragma once

namespace fovea::cuda {

constexpr int kOwnQueries = kMmaWarps * 16;

struct alignas(kAligned) ThresholdQueryShared {
  Stored queries[kOwnQueries * kPitch];
  Stored keys[2][kKeys * kPitch];
  union {
    Entry entries[kMmaWarps][16 * kListPitch];
    struct {  // where lists do not serve
      Stored outputs[kOwnQueries * kValuePitch], values[kKeys * kValuePitch];
    };
  };
  int bad[kKeys];
  RowData rows[kOwnQueries];
  // Of a row: sums of modifiers' numbers; the ends of distances (Relative).
  float slots[kOwnQueries][Modifiers::kCount + 1], ends[kOwnQueries][2];
  unsigned char covers[kThreads];
};
static_assert(sizeof(ThresholdQueryShared) <= kSharedBytes);

// A score that pairs with weight are above, however rounded; infinite where none has weight.
inline float least_score(const Arguments& a, int head, const Row& row) {
  constexpr float kRounding = 2e-6f;
  if (row.state == kSpoiled) return -infinity_of(T());
  if (row.state == kEmpty) return infinity_of(T());
  const float lowest = Normaliser::lowest(a, head, row);
  return lowest - kRounding * (magnitude(lowest) + magnitude(row.shift));
}

struct ThresholdQueryGradient {
  const Arguments& a;
  ThresholdQueryShared& shared;
  Sequence s;
  int head, row, key_head, count;
  Covers covers;
  Lists lists;
  float bound[2];
  bool folds = false;  // this pass sums for delta
  bool full = false;   // lists have not served
  float sums[1][kWidth / 8][4];
  float slots[2][Modifiers::kCount + 1] = {}, ends[2][2] = {};

  struct Sink {
    ThresholdQueryGradient& to;
    int mine;
    FOVEA_INLINE void score(int, T) {}
    bool once;  // of the lanes that make the same numbers, this one gives them
    FOVEA_INLINE void slope(int n, T x) {
      if (once) to.shared.slots[mine][n] += x;
    }
    FOVEA_INLINE void distance(void* sums, const Change& change, const Place& p, T x) {
      if (!sums || !once) return;
      const int clip = static_cast<int>(change.whole), apart = p.j - p.i;
      if (apart > -clip && apart < clip)
        static_cast<T*>(sums)[p.row_index * (2 * clip + 1) + apart + clip] = x;
      else
        to.shared.ends[mine][apart > 0] += x;
    }
  };

  // The same for the pairs of a lane.
  struct PairSink {
    ThresholdQueryGradient& to;
    int half;
    FOVEA_INLINE void score(int, T) {}
    FOVEA_INLINE void slope(int n, T x) { to.slots[half][n] += x; }
    FOVEA_INLINE void distance(void* sums, const Change& change, const Place& p, T x) {
      if (!sums) return;
      const int clip = static_cast<int>(change.whole), apart = p.j - p.i;
      if (apart > -clip && apart < clip)
        static_cast<T*>(sums)[p.row_index * (2 * clip + 1) + apart + clip] = x;
      else if (apart > 0)
        to.ends[half][1] += x;
      else
        to.ends[half][0] += x;
    }
  };

  int own(int half) const { return warp() * 16 + lane() / 4 + half * 8; }
  int next(int key, int end, Rectangle& at) {
    for (; key < end; key += kKeys)
      if (covers.look(a, s, head, row, kOwnQueries, 0, key, kKeys, kKeys, at)) return key;
    return end;
  }
  void copy(int key, int buffer) {
    copy_rows<kKeys, kWidth>(shared.keys[buffer], a.key, s.batch, key_head, s.first_key + key,
                             s.keys - key);
  }

  // The gradient of a pair's score, `product` that of its weight before dropout; or, where this pass
  // folds, what it adds to the sums of its row.
  template <class To>
  FOVEA_INLINE float pair_gradient(int mine, int key, float x, float product, To sink,
                                   float& weighted, float& total) {
    const RowData& data = shared.rows[mine];
    const Place p{s.batch,
                  head,
                  row + mine,
                  s.position + row + mine,
                  key,
                  key,
                  row_index(a, s, head, row + mine)};
    const Scored scored = score_of(a, p, x, 1);
    if (!scored.seen) return 0;
    const float weight = weight_of(a, head, scored.e, data.row, key);
    if (weight == 0) return 0;
    const float dropped = dropout_factor(a, data.random, key);
    const float da = dropped == 0 ? 0 : dropped * product;
    if (folds) {
      const float w = Normaliser::fold_weight(a, head, weight);
      if (w != 0) weighted += w * da;
      total += w;
      return 0;
    }
    const float de = gradient_of(a, head, weight, da, scored.e, data);
    return Modifiers::backward(a.modifier, p, scored.steps, de, 0, sink);
  }

  // ---- from the lists ----

  FOVEA_INLINE void sum_lists() {
    __syncwarp();
    each_four_rows([&](int r) {
      const int mine = warp() * 16 + r;
      const bool there = mine < count;
      RowPart<kValueWidth> output;
      output.read(row_of<Stored>(a.d_output, s.batch, head, s.first_query + row + mine), there);
      RowSums<kWidth> row_sums;
      row_sums.start();
      float weighted = 0, total = 0;
      each_four_entries(lists, r, [&](const Entry(&entries)[4], const bool(&has)[4]) {
        RowPart<kValueWidth> values[4];
        RowPart<kWidth> keys[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          const Whole key = s.first_key + entries[q].other;
          values[q].read(row_of<Stored>(a.value, s.batch, key_head, key), has[q]);
          keys[q].read(row_of<Stored>(a.key, s.batch, key_head, key), has[q] && !folds);
        }
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          const float product = output.times(values[q]);
          if (!has[q]) continue;
          const float de =
              pair_gradient(mine, entries[q].other, entries[q].x, product,
                            Sink{*this, mine, lane() % kRowLanes == 0}, weighted, total);
          row_sums.add(de, keys[q]);
        }
      });
      if (!there) return;
      if (!folds)
        row_sums.write(row_of<Stored>(a.d_query, s.batch, head, s.first_query + row + mine),
                       static_cast<float>(a.scale));
      else if (lane() % kRowLanes == 0)
        shared.rows[mine].delta = total == 0 ? 0 : weighted / total;
    });
    __syncwarp();
  }
  FOVEA_INLINE void collect_tile(const Rectangle& at, int buffer) {
    float x[1][kKeys / 8][4], e[kKeys / 8][4];
    multiply_rows<1, kKeys, kWidth, kOwnQueries, kKeys>(shared.queries, warp() * 16,
                                                        shared.keys[buffer], 0, x);
    const Mask<true> mask(a, s, at, own(0));
    Given<1, kKeys> given;
    given.read(a, mask);
    wait_products(x);
    if (at.whole)
      scores_of<true, true, kKeys>(a, mask, given, x[0], e);
    else
      scores_of<false, true, kKeys>(a, mask, given, x[0], e);
    raise_bad(e);
    lists.collect<kKeys>(
        e, x[0], at.key, [&](int, int c) { return bound[c / 2]; },
        [&] {
          full = true;
          lists.count[0] = lists.count[1] = 0;
        });
  }
  // False: rows have weight for more keys than lists hold.
  FOVEA_INLINE bool collect() {
    Rectangle at, after;
    int first, end, buffer = 0;
    key_range(a, s, head, row, kOwnQueries, first, end);
    int key = next(first / kKeys * kKeys, end, at);
    if (key < end) copy(key, buffer);
    while (key < end) {
      const int following = next(key + kKeys, end, after);
      end_copies();
      if (__syncthreads_or(full)) break;
      if (following < end) copy(following, buffer ^ 1);
      collect_tile(at, buffer);
      buffer ^= 1;
      key = following;
      at = after;
    }
    wait_copies();
    return !__syncthreads_or(full);
  }

  // ---- from all pairs ----

  FOVEA_INLINE void multiply_step(const Rectangle& at, bool has_bad, int first,
                                  float (&weighted)[2], float (&total)[2]) {
    float x[1][kKeyStep / 8][4], d[1][kKeyStep / 8][4];
    multiply_rows<1, kKeyStep, kWidth, kOwnQueries, kKeys>(shared.queries, warp() * 16,
                                                           shared.keys[0], first, x);
    multiply_rows<1, kKeyStep, kValueWidth, kOwnQueries, kKeys>(shared.outputs, warp() * 16,
                                                                shared.values, first, d);
    const Mask<true> mask(a, s, at, own(0));
    wait_products(x, d);
#pragma unroll
    for (int n = 0; n < kKeyStep / 8; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int key = at.key + n * 8 + lane() % 4 * 2 + c % 2;
        const bool seen = own(c / 2) < count && (at.whole || mask.allows(0, n, c));
        x[0][n][c] = seen ? pair_gradient(own(c / 2), key, x[0][n][c], d[0][n][c],
                                          PairSink{*this, c / 2}, weighted[c / 2], total[c / 2])
                          : 0;
      }
    if (folds) return;
    multiply_seen<1, kKeyStep, kWidth, kKeys>(has_bad, x, shared.keys[0], first, a.key, s.batch,
                                              key_head, s.first_key + at.key, shared.bad, sums);
    wait_products(sums);
  }
  FOVEA_INLINE void multiply_all(float (&weighted)[2], float (&total)[2]) {
    Rectangle at;
    int first, end;
    key_range(a, s, head, row, kOwnQueries, first, end);
    for (int key = next(first / kKeys * kKeys, end, at); key < end;
         key = next(key + kKeys, end, at)) {
      __syncthreads();
      copy(key, 0);
      copy_rows<kKeys, kValueWidth>(shared.values, a.value, s.batch, key_head, s.first_key + key,
                                    s.keys - key);
      end_copies();
      __syncthreads();
      // A weight of 0 takes nothing from a key that is not finite.
      const bool has_bad = __syncthreads_or(finds_bad<kKeys, kWidth>(shared.keys[0]));
#pragma unroll 1
      for (int k = 0; k < kKeys; k += kKeyStep) {
        Rectangle part;
        if (part_of(a, s, at, 0, kOwnQueries, k, kKeyStep, part))
          multiply_step(part, has_bad, k, weighted, total);
      }
    }
  }
  FOVEA_INLINE void sum_all() {
    copy_rows<kOwnQueries, kValueWidth>(shared.outputs, a.d_output, s.batch, head,
                                        s.first_query + row, count);
    float weighted[2] = {}, total[2] = {};
    if constexpr (Normaliser::kDelta == Delta::kFold) {
      folds = true;
      multiply_all(weighted, total);
      folds = false;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = lanes_sum<4>(total[half]), of = lanes_sum<4>(weighted[half]);
        if (lane() % 4 == 0) shared.rows[own(half)].delta = sum == 0 ? 0 : of / sum;
      }
      __syncwarp();
    }
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) sums[0][n][c] = 0;
    multiply_all(weighted, total);
    const float factors[1][2] = {{static_cast<float>(a.scale), static_cast<float>(a.scale)}};
    write_rows<1, kWidth>(a.d_query, s.batch, head, s.first_query + row, count, sums, factors);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int n = 0; n < Modifiers::kCount; ++n) {
        const float x = lanes_sum<4>(slots[half][n]);
        if (lane() % 4 == 0) shared.slots[own(half)][n] = x;
      }
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float x = lanes_sum<4>(ends[half][n]);
        if (lane() % 4 == 0) shared.ends[own(half)][n] = x;
      }
    }
  }

  FOVEA_INLINE void start_rows() {
    for (int r = threadIdx.x; r < kOwnQueries; r += kThreads) {
      RowData data{{0, 0, 0, kEmpty}, 1, 0, 0, 0};
      if (r < count) {
        data = row_data(a, s, head, row + r);
        read_statistics(a, row_index(a, s, head, row + r), data);
      }
      shared.rows[r] = data;
      shared.ends[r][0] = shared.ends[r][1] = 0;
      for (int n = 0; n <= Modifiers::kCount; ++n) shared.slots[r][n] = 0;
    }
    __syncthreads();
    if constexpr (Normaliser::kDelta != Delta::kFromOutput) return;
    each_four_rows([&](int r) {
      const int mine = warp() * 16 + r;
      const bool there = mine < count;
      RowPart<kValueWidth> d_output, output;
      d_output.read(row_of<Stored>(a.d_output, s.batch, head, s.first_query + row + mine), there);
      output.read(row_of<Stored>(a.output, s.batch, head, s.first_query + row + mine), there);
      const float delta = d_output.times(output);
      if (lane() % kRowLanes == 0) shared.rows[mine].delta = delta;
    });
    __syncthreads();
  }
  // What the key's gradient and the host's sums want of the rows.
  void keep_rows() {
    __syncthreads();
    for (int r = threadIdx.x; r < count; r += kThreads) {
      const Whole index = row_index(a, s, head, row + r);
      static_cast<float*>(a.delta)[index] = shared.rows[r].delta;
      for (int n = 0; n < Modifiers::kCount; ++n)
        if (Modifiers::kSlopes)
          static_cast<T*>(a.row_gradients)[(kFirstChange + n) * a.rows + index] =
              shared.slots[r][n];
      if constexpr (Modifiers::kAddsValues) {
        const Change& change = a.modifier[0];  // relative positions come first
        const Whole clip = change.whole;
        if (!change.d_scores) continue;
        const float low = shared.ends[r][0], high = shared.ends[r][1];
        T* to = static_cast<T*>(change.d_scores) + index * (2 * clip + 1);
        to[0] = clip == 0 ? low + high : low;
        if (clip > 0) to[2 * clip] = high;
      }
    }
  }

  FOVEA_INLINE void run() {
    __syncthreads();
    count = least(kOwnQueries, s.queries - row);
    copy_rows<kOwnQueries, kWidth>(shared.queries, a.query, s.batch, head, s.first_query + row,
                                   count);
    covers.kept = shared.covers;
    lists.entries = shared.entries[warp()];
    start_rows();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      bound[half] = least_score(a, head, shared.rows[own(half)].row);
    if (collect()) {
      folds = Normaliser::kDelta == Delta::kFold;
      if (folds) sum_lists();
      folds = false;
      sum_lists();
    } else {
      sum_all();
    }
    keep_rows();
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(fovea::cuda::kThreads, fovea::cuda::kQueryResident)
    fovea_gradient_query(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<ThresholdQueryShared*>(bytes);
  each_query_tile(a, kOwnQueries, [&](const Sequence& s, int head, int row) {
    ThresholdQueryGradient{a, shared, s, head, row, key_head_of(a, head)}.run();
  });
}
