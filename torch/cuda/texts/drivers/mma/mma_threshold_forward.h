// Forward of the normalisers that look for a threshold, on tensor cores. In one pass over the keys each
// row keeps the scores that may still have weight: what is kept gives a threshold that only rises.
// From these lists come the threshold and the sum of values. Where rows of a block have weight for more
// keys than lists hold, further passes find the root (scores computed again, none kept), and one more
// multiplies weights and values on tensor cores.
#pragma once

namespace fovea::cuda {

constexpr int kOwn = kMmaWarps * 16, kOther = kForwardKeys;

struct alignas(kAligned) ThresholdShared {
  Stored queries[kOwn * kPitch];
  Stored keys[2][kOther * kPitch];
  union {
    Entry entries[kMmaWarps][16 * kListPitch];
    Stored values[2][kOther * kValuePitch];  // where lists do not serve
  };
  int bad[kOther];
  unsigned long long random[kDropout ? kOwn : 1];
  unsigned char covers[kThreads];
};
static_assert(sizeof(ThresholdShared) <= kSharedBytes);

enum class Phase { kCollect, kSum, kWeigh };

struct ThresholdForward {
  const Arguments& a;
  ThresholdShared& shared;
  Sequence s;
  int head, row, key_head, count;
  Covers covers;
  Lists lists;
  float factor;
  float sums[1][kValueWidth / 8][4];  // where lists do not serve
  // Of a lane's two rows.
  float top[2], bound[2];          // the largest score so far; what a score must be above
  float low[2];                    // of a root: where the sum is at least 1
  bool bad[2] = {}, open[2] = {};  // open: more keys than lists hold
  float sum[2], slope[2];
  Root root[2];
  Row made[2];
  float lse[2];

  int own(int half) const { return warp() * 16 + lane() / 4 + half * 8; }
  bool is_row(int half) const { return own(half) < count; }

  int next(int key, int end, Rectangle& at) {
    for (; key < end; key += kOther)
      if (covers.look(a, s, head, row, kOwn, 0, key, kOther, kOther, at)) return key;
    return end;
  }
  FOVEA_INLINE void copy(Phase phase, int key, int buffer) {
    copy_rows<kOther, kWidth>(shared.keys[buffer], a.key, s.batch, key_head, s.first_key + key,
                              s.keys - key);
    if (phase == Phase::kWeigh)
      copy_rows<kOther, kValueWidth>(shared.values[buffer], a.value, s.batch, key_head,
                                     s.first_key + key, s.keys - key);
  }

  // ---- the threshold of what is kept ----

  FOVEA_INLINE float bound_of(int half) const {
    if (!is_row(half) || bad[half] || open[half]) return infinity_of(T());
    if (top[half] == -infinity_of(T())) return -infinity_of(T());
    return below(top[half] + low[half] / factor, top[half]);
  }
  // Less by what scores and thresholds are rounded.
  static FOVEA_INLINE float below(float x, float top) {
    constexpr float kRounding = 2e-6f;
    return x - kRounding * (magnitude(x) + magnitude(top));
  }

  FOVEA_INLINE void add_sum(int half, float e) {
    const float above = factor * (e - top[half]) - root[half].tau;
    if (above > 0) {
      const float weight = Normaliser::raised(above, factor);
      sum[half] += weight;
      slope[half] += Normaliser::rise(weight, above, factor);
    }
  }
  // `steps` of the roots of both rows, from what the lists hold.
  FOVEA_INLINE void find_roots(int steps) {
    bool going[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      root[half] = Root{low[half], 0, low[half]};
      going[half] = is_row(half) && !open[half] && !bad[half] && top[half] > -infinity_of(T());
    }
#pragma unroll 1
    for (int step = 0; step < steps && __ballot_sync(~0u, going[0] | going[1]); ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float before = sum[half];
        sum[half] = slope[half] = 0;
        if (going[half]) lists.each(half, [&](const Entry& entry) { add_sum(half, entry.x); });
        const float all = lanes_sum<4>(sum[half]), rise = lanes_sum<4>(slope[half]) / factor;
        sum[half] = going[half] ? all : before;
        if (going[half]) going[half] = root[half].step(all, rise);
      }
    }
  }

  // The k-th score of what a row's list holds, and the last tie of it that is taken, which is the
  // earlier ones; `there`: whether there are so many.
  struct Kth {
    bool there;
    float score;
    int last;
  };
  FOVEA_INLINE Kth find_kth(int half, int k) {
    using Order = unsigned;
    const auto order = [](float x) { return static_cast<Order>(Normaliser::order(x)); };
    const int all = lists.count[half];
    float smallest = infinity_of(T());
    lists.each(half, [&](const Entry& entry) { smallest = fminf(smallest, entry.x); });
    // At least k reach `lowest`, fewer `beyond`.
    Order lowest = order(-lanes_max<4>(-smallest)), beyond = order(top[half]) + 1;
    int found = all;
    bool going = all > k;
    while (__ballot_sync(~0u, going)) {
      const Order middle = lowest + (beyond - lowest) / 2;
      int n = 0;
      if (going) lists.each(half, [&](const Entry& entry) { n += order(entry.x) >= middle; });
      n = lanes_sum<4>(n);
      if (going && n >= k) {
        lowest = middle;
        found = n;
      } else if (going) {
        beyond = middle;
      }
      going = going && found > k && beyond - lowest > 1;
    }
    smallest = infinity_of(T());
    lists.each(half, [&](const Entry& entry) {
      if (order(entry.x) >= lowest) smallest = fminf(smallest, entry.x);
    });
    Kth kth{all >= k, -lanes_max<4>(-smallest), -1};
    int ties = 0;
    lists.each(half, [&](const Entry& entry) {
      if (entry.x != kth.score) return;
      ++ties;
      kth.last = most(kth.last, entry.other);
    });
    ties = lanes_sum<4>(ties);
    kth.last = most(kth.last, __shfl_xor_sync(~0u, kth.last, 1));
    kth.last = most(kth.last, __shfl_xor_sync(~0u, kth.last, 2));
    const int left = k - (found - ties);
    int before = -1;  // ties up to there are too few
    going = kth.there && ties > left;
    while (__ballot_sync(~0u, going)) {
      const int middle = before + (kth.last - before) / 2;
      int n = 0;
      if (going)
        lists.each(half,
                   [&](const Entry& entry) { n += entry.x == kth.score && entry.other <= middle; });
      n = lanes_sum<4>(n);
      if (going) (n >= left ? kth.last : before) = middle;
      going = going && kth.last - before > 1;
    }
    return kth;
  }
  // The row of the k largest. Its threshold lies between two scores where it can, so that scores which
  // other loops round otherwise fall on the same side.
  FOVEA_INLINE Row kth_row(int half) {
    Kth kth = find_kth(half, static_cast<int>(a.k));
    if (!kth.there) kth = {true, -infinity_of(T()), -1};
    float total = 0, next = -infinity_of(T());
    lists.each(half, [&](const Entry& entry) {
      if (Normaliser::chosen(entry.x, entry.other, kth.score, kth.last))
        total += exponential(entry.x - top[half]);
      else
        next = larger(next, entry.x);
    });
    total = lanes_sum<4>(total);
    next = lanes_max<4>(next);
    if (next < kth.score) {
      const float middle = next == -infinity_of(T()) ? next : next + (kth.score - next) / 2;
      kth = {true, middle < kth.score ? middle : next, -1};
    }
    lse[half] = top[half] + logarithm(total);
    return {top[half], 1 / total, kth.score, state_of(kth.last)};
  }

  FOVEA_INLINE void make_room() {
    if constexpr (Normaliser::kRoot) {
      constexpr int kSteps = 3;
      find_roots(kSteps);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        low[half] = root[half].low;
        bound[half] = bound_of(half);
        lists.keep(half, [&](const Entry& entry) { return entry.x > bound[half]; });
        if (lists.count[half] > kKept) {
          open[half] = true;
          lists.count[half] = 0;
        }
        bound[half] = bound_of(half);
      }
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        // One more than is taken, so that the threshold can lie between two scores.
        const Kth kth = find_kth(half, static_cast<int>(a.k) + 1);
        if (kth.there && bound[half] < infinity_of(T())) bound[half] = kth.score;
        lists.keep(half, [&](const Entry& entry) {
          return !kth.there || Normaliser::chosen(entry.x, entry.other, kth.score, kth.last);
        });
      }
    }
  }

  FOVEA_INLINE void collect(const Rectangle& at, const float (&e)[kOther / 8][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = -infinity_of(T());
#pragma unroll
      for (int n = 0; n < kOther / 8; ++n)
        largest = larger_or_nan(largest, larger_or_nan(e[n][2 * half], e[n][2 * half + 1]));
#pragma unroll
      for (int distance = 1; distance < 4; distance *= 2)
        largest = larger_or_nan(largest, __shfl_xor_sync(~0u, largest, distance));
      bad[half] |= !(largest < infinity_of(T()));
      if (bad[half]) {
        bound[half] = infinity_of(T());
      } else if (largest > top[half]) {
        if constexpr (Normaliser::kRoot)
          low[half] = larger(T(-1), low[half] - factor * (largest - top[half]));
        top[half] = largest;
        if constexpr (Normaliser::kRoot) bound[half] = bound_of(half);
      }
    }
    lists.collect<kOther>(
        e, e, at.key, [&](int, int c) { return bound[c / 2]; }, [&] { make_room(); });
  }

  // ---- values ----

  FOVEA_INLINE void weigh() {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      lists.keep(half, [&](Entry& entry) {
        entry.x = Normaliser::weight(a, head, entry.x, made[half], entry.other);
        if (entry.x != 0 && kDropout)
          entry.x *= dropout_factor(a, shared.random[own(half)], entry.other);
        return entry.x != 0;
      });
    __syncwarp();
  }
  // The output from the lists.
  FOVEA_INLINE void sum_lists() {
    weigh();
    each_four_rows([&](int r) {
      const int mine = warp() * 16 + r;
      RowSums<kValueWidth> row_sums;
      row_sums.start();
      each_four_entries(lists, r, [&](const Entry(&entries)[4], const bool(&has)[4]) {
        RowPart<kValueWidth> values[4];
#pragma unroll
        for (int q = 0; q < 4; ++q)
          values[q].read(row_of<Stored>(a.value, s.batch, key_head, s.first_key + entries[q].other),
                         has[q]);
#pragma unroll
        for (int q = 0; q < 4; ++q)
          if (has[q]) row_sums.add(entries[q].x, values[q]);
      });
      const float low = __shfl_sync(~0u, made[0].state, r % 8 * 4),
                  high = __shfl_sync(~0u, made[1].state, r % 8 * 4);
      if (mine >= count) return;
      // A row that saw nothing has no entries.
      if ((r < 8 ? low : high) == kSpoiled) row_sums.spoil();
      row_sums.write(row_of<Stored>(a.output, s.batch, head, s.first_query + row + mine), 1);
    });
  }

  // Adds a tile's values by its scores e, which become weights.
  FOVEA_INLINE void add_values(const Rectangle& at, float (&e)[1][kOther / 8][4], int buffer) {
#pragma unroll
    for (int n = 0; n < kOther / 8; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int key = at.key + n * 8 + lane() % 4 * 2 + c % 2;
        float& weight = e[0][n][c];
        weight =
            weight == -infinity_of(T()) ? 0 : Normaliser::weight(a, head, weight, made[c / 2], key);
        if (kDropout && weight != 0) weight *= dropout_factor(a, shared.random[own(c / 2)], key);
      }
    // A weight of 0 takes nothing from a value that is not finite.
    const bool has_bad = __syncthreads_or(finds_bad<kOther, kValueWidth>(shared.values[buffer]));
    multiply_seen<1, kOther, kValueWidth, kOther>(has_bad, e, shared.values[buffer], 0, a.value,
                                                  s.batch, key_head, s.first_key + at.key,
                                                  shared.bad, sums);
    wait_products(sums);
  }

  // ---- passes over the keys ----

  FOVEA_INLINE void add_tile(Phase phase, const Rectangle& at, int buffer) {
    float x[1][kOther / 8][4];
    multiply_rows<1, kOther, kWidth, kOwn, kOther>(shared.queries, warp() * 16, shared.keys[buffer],
                                                   0, x);
    const Mask<true> mask(a, s, at, own(0));
    Given<1, kOther> given;
    given.read(a, mask);
    wait_products(x);
    if (at.whole)
      scores_of<true, true, kOther>(a, mask, given, x[0], x[0]);
    else
      scores_of<false, true, kOther>(a, mask, given, x[0], x[0]);
    if (phase == Phase::kCollect) {
      collect(at, x[0]);
    } else if (phase == Phase::kWeigh) {
      add_values(at, x, buffer);
    } else {
#pragma unroll
      for (int n = 0; n < kOther / 8; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) add_sum(c / 2, x[0][n][c]);
    }
  }
  FOVEA_INLINE void pass(Phase phase) {
    Rectangle at, after;
    int first, end, buffer = 0;
    key_range(a, s, head, row, kOwn, first, end);
    int key = next(first / kOther * kOther, end, at);
    if (key < end) copy(phase, key, buffer);
    while (key < end) {
      const int following = next(key + kOther, end, after);
      end_copies();
      __syncthreads();
      if (following < end) copy(phase, following, buffer ^ 1);
      add_tile(phase, at, buffer);
      buffer ^= 1;
      key = following;
      at = after;
    }
    wait_copies();
    __syncthreads();
  }

  // The rows that lists decide.
  FOVEA_INLINE void solve() {
    if constexpr (Normaliser::kRoot) find_roots(kRootSteps);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      made[half] = {0, 0, 0, kEmpty};
      lse[half] = -infinity_of(T());
      const bool seen = top[half] > -infinity_of(T());
      if constexpr (Normaliser::kRoot) {
        if (seen) made[half] = Normaliser::rooted(top[half], sum[half], root[half].tau);
      } else {
        const Row row = kth_row(half);
        if (seen)
          made[half] = row;
        else
          lse[half] = -infinity_of(T());
      }
      if (bad[half]) made[half] = {0, 0, 0, kSpoiled};
    }
  }
  // Roots of the rows that have none yet, and the output of all.
  FOVEA_INLINE void solve_open() {
    bool going[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      going[half] = open[half] && !bad[half];
      if (going[half]) root[half] = Root{low[half], 0, low[half]};
    }
    while (__syncthreads_or(going[0] | going[1])) {
#pragma unroll
      for (int half = 0; half < 2; ++half) sum[half] = slope[half] = 0;
      // One row's sums are the other's waste: all are computed.
      pass(Phase::kSum);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float all = lanes_sum<4>(sum[half]), rise = lanes_sum<4>(slope[half]) / factor;
        if (going[half] && !root[half].step(all, rise)) {
          going[half] = false;
          made[half] = Normaliser::rooted(top[half], all, root[half].tau);
        }
      }
    }
#pragma unroll
    for (int n = 0; n < kValueWidth / 8; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) sums[0][n][c] = 0;
    pass(Phase::kWeigh);
    float factors[1][2];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      factors[0][half] = made[half].state == kSpoiled ? nan_of(T())
                         : made[half].state == kEmpty ? T(0)
                                                      : T(1);
    write_rows<1, kValueWidth>(a.output, s.batch, head, s.first_query + row, count, sums, factors);
  }

  FOVEA_INLINE void run() {
    __syncthreads();
    count = least(kOwn, s.queries - row);
    copy_rows<kOwn, kWidth>(shared.queries, a.query, s.batch, head, s.first_query + row, count);
    if constexpr (kDropout)
      for (int r = threadIdx.x; r < count; r += kThreads)
        shared.random[r] = row_data(a, s, head, row + r).random;
    covers.kept = shared.covers;
    lists.entries = shared.entries[warp()];
    factor = Normaliser::factor_of(a, head);
    for (int half = 0; half < 2; ++half) {
      top[half] = -infinity_of(T());
      low[half] = -1;
      bound[half] = is_row(half) ? -infinity_of(T()) : infinity_of(T());
    }
    pass(Phase::kCollect);
    solve();
    bool has_open = false;
    if constexpr (Normaliser::kRoot)
      has_open = __syncthreads_or((open[0] && !bad[0]) || (open[1] && !bad[1]));
    if (has_open) solve_open();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (lane() % 4 == 0 && is_row(half))
        keep_row(a, row_index(a, s, head, row + own(half)), made[half], lse[half]);
    if (!has_open) sum_lists();
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(fovea::cuda::kThreads, fovea::cuda::kResident)
    fovea_forward(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<ThresholdShared*>(bytes);
  each_query_tile(a, kOwn, [&](const Sequence& s, int head, int row) {
    ThresholdForward{a, shared, s, head, row, key_head_of(a, head)}.run();
  });
}
