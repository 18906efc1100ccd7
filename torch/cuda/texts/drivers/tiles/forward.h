// Forward on tiles: a block owns a tile of queries and a chunk of the output's columns. Where
// kParted, it has a part of the keys and all columns, so that each score is computed once; its sums
// of values lie in the part's memory (merge.h).
#pragma once

namespace fovea::cuda {

// A part of a row, where blocks share out its keys: its largest score, the sum of its powers, how many
// keys it saw, whether one spoils the row, and its sums of values.
constexpr int kPartHead = 4, kPartNumbers = kPartHead + kValueWidth;

inline T* part_of(const Arguments& a, Whole row, int part) {
  return static_cast<T*>(a.scratch) + (row * a.scratch_row + part) * kPartNumbers;
}

// Values so narrow that each thread sums its own pairs.
constexpr bool kNarrow = kValueWidth <= 8;
constexpr int kOutputs = kNarrow ? at_least_one(kValueWidth) : columns_of(kValueWidth, kChunk);
constexpr bool kOnePass = !Normaliser::kThreshold && !Modifiers::kAddsValues;

struct Forward {
  const Arguments& a;
  Tiles& tiles;
  Sequence s;
  int head, row, column;  // the first of the tile, of the chunk
  T sums[kPer][kOutputs] = {};
  T shift[kPer], total[kPer] = {}, seen[kPer] = {};
  T rescale[kPer];  // what the tile's larger scores leave of the sums before it
  bool bad[kPer] = {}, started = false;

  // body(rectangle, sums) for the tiles of keys that the tile of queries meets, in order.
  template <class Body>
  void each_tile(Body body) {
    int first, end;
    key_range(a, s, head, row, kTile, first, end);
    first = first / kTile * kTile;
    if constexpr (kParted) {
      const int tiles = (most(0, end - first) + kTile - 1) / kTile, parts = gridDim.y,
                each = (tiles + parts - 1) / parts * kTile;
      first += static_cast<int>(blockIdx.y) * each;
      end = least(end, first + each);
    }
    for (int key = first; key < end; key += kTile) {
      Rectangle at;
      if (!rectangle_of(a, s, head, row, key, at)) continue;
      T scores[kPer][kPer];
      Pairs<true>::sum_scores(a, tiles, at, scores);
      body(at, scores);
    }
  }

  void start() {
    __syncthreads();
    for (int r = threadIdx.x; r < kTile; r += kThreads)
      if (row + r < s.queries) tiles.rows[r] = row_data(a, s, head, row + r);
    __syncthreads();
    for (int r = 0; r < kPer; ++r) shift[r] = -infinity_of(T());
  }
  bool there(int r) const { return row + group() * kPer + r < s.queries; }
  Whole index(int r) const { return row_index(a, s, head, row + group() * kPer + r); }

  // weights[r][n] of a rectangle's pairs, to the sums of values.
  void add_values(const Rectangle& at, const T (&weights)[kPer][kPer]) {
    const auto values =
        side_of<Value>(a.value, s.batch, at.key_head, s.first_key + at.key, at.keys);
    if constexpr (kNarrow) {
      __syncthreads();
      for (int n = threadIdx.x; n < kTile * kOutputs; n += kThreads) {
        const int c = n % kOutputs, j = n / kOutputs;
        tiles.products[0][n] = j < values.count && c < kValueWidth
                                   ? static_cast<T>(widen(values.data[j * values.row + c]))
                                   : T(0);
      }
      __syncthreads();
#pragma unroll
      for (int n = 0; n < kPer; ++n) {
#pragma unroll
        for (int c = 0; c < kOutputs; ++c) {
          const T v = tiles.products[0][(member() * kPer + n) * kOutputs + c];
#pragma unroll
          for (int r = 0; r < kPer; ++r)
            if (weights[r][n] != 0) sums[r][c] += weights[r][n] * v;
        }
      }
    } else {
      __syncthreads();
#pragma unroll
      for (int n = 0; n < kPer; ++n) {
#pragma unroll
        for (int r = 0; r < kPer; ++r)
          tiles.products[member() * kPer + n][group() * kPer + r] = weights[r][n];
      }
      if constexpr (kParted)
        add_to_part(values);
      else
        sum_rows(tiles, values, column, kValueWidth, sums);
    }
  }

  void add_to_part(const Side<Value>& values) {
    for (int first = 0; first < kValueWidth; first += kChunk) {
      T more[kPer][kOutputs] = {};
      sum_rows(tiles, values, first, kValueWidth, more);
#pragma unroll
      for (int r = 0; r < kPer; ++r) {
        if (!there(r)) continue;
        T* part = part_of(a, index(r), blockIdx.y) + kPartHead;
#pragma unroll
        for (int c = 0; c < kOutputs; ++c) {
          const int at = first + member() + c * kSide;
          if (at < kValueWidth) part[at] = (started ? rescale[r] * part[at] : T(0)) + more[r][c];
        }
      }
    }
    started = true;
  }

  // ---- one pass: powers, brought to a new shift when a larger score comes ----

  void fold_tile(const Rectangle& at, const T (&scores)[kPer][kPer], bool to_values) {
    T e[kPer][kPer];
    bool is_seen[kPer][kPer] = {};
    T weights[kPer][kPer] = {};
    Pairs<true>::each_seen(
        a, tiles, at, scores,
        [&](int r, int n, const Place& p, const Scored& scored, const RowData& data) {
          e[r][n] = scored.e;
          is_seen[r][n] = true;
          weights[r][n] = dropout_factor(a, data.random, p.j);
        });
#pragma unroll
    for (int r = 0; r < kPer; ++r) {
      rescale[r] = 1;
      if constexpr (Normaliser::kShifts) {
        T top = shift[r];
#pragma unroll
        for (int n = 0; n < kPer; ++n)
          if (is_seen[r][n]) top = larger(top, e[r][n]);
        top = lanes_max<kSide>(top);
        if (top > shift[r]) {
          rescale[r] = shift[r] == -infinity_of(T()) ? T(0) : exponential(shift[r] - top);
          total[r] *= rescale[r];
          if constexpr (!kParted) {
#pragma unroll
            for (int c = 0; c < kOutputs; ++c) sums[r][c] *= rescale[r];
          }
          shift[r] = top;
        }
      }
#pragma unroll
      for (int n = 0; n < kPer; ++n) {
        if (!is_seen[r][n]) continue;
        bad[r] |= Normaliser::kLooks && !is_finite(e[r][n]);
        const T x = Normaliser::power(e[r][n], shift[r]);
        total[r] += x;
        seen[r] += 1;
        weights[r][n] *= x;
      }
    }
    if (to_values) add_values(at, weights);
  }

  // The rows of a one-pass normaliser; the factors that bring powers to weights.
  Row finish_row(int r, T& factor) {
    const T sum = lanes_sum<kSide>(total[r]), count = lanes_sum<kSide>(seen[r]);
    const bool spoiled = lanes_any<kSide>(bad[r]);
    factor = 0;
    Row made{0, 0, 0, kEmpty};
    if (spoiled) {
      made.state = kSpoiled;
      factor = nan_of(T());
    } else if (count > 0) {
      made = Normaliser::finish(a, head, shift[r], sum, count);
      factor = Normaliser::factor(shift[r], made);
    }
    return made;
  }

  // ---- two passes: rows first, then weights ----

  void solve_rows() {
    if constexpr (Normaliser::kThreshold) {
      T* scratch =
          static_cast<T*>(a.scratch) +
          (static_cast<Whole>(blockIdx.y) * gridDim.x + blockIdx.x) * kTile * a.scratch_row;
      int first = -1, end = 0;  // keys whose scores lie in the scratch
      const auto mine = [&](int r, int key) -> T& {
        return scratch[(group() * kPer + r) * a.scratch_row + key - first];
      };
      each_tile([&](const Rectangle& at, const T(&scores)[kPer][kPer]) {
        if (first < 0) first = end = at.key;
        for (; end < at.key + kTile; end += kTile) {
          for (int r = 0; r < kPer; ++r)
            for (int n = 0; n < kPer; ++n) mine(r, end + member() * kPer + n) = -infinity_of(T());
        }
        Pairs<true>::each_seen(
            a, tiles, at, scores,
            [&](int r, int n, const Place&, const Scored& scored, const RowData&) {
              bad[r] |= !is_finite(scored.e);
              mine(r, at.key + member() * kPer + n) = scored.e;
            });
      });
      __syncthreads();
      for (int r = 0; r < kPer; ++r) {
        const bool spoiled = lanes_any<kSide>(bad[r]);
        if (member() == 0) tiles.rows[group() * kPer + r].row.state = spoiled ? kSpoiled : kEmpty;
      }
      __syncthreads();
      const int warp = threadIdx.x / kWarp;
      for (int r = warp; r < least(kTile, s.queries - row); r += kThreads / kWarp) {
        RowData& data = tiles.rows[r];
        T lse = -infinity_of(T());
        Row made{0, 0, 0, kSpoiled};
        if (data.row.state != kSpoiled)
          made = Normaliser::solve(a, head, scratch + r * a.scratch_row,
                                   first < 0 ? 0 : end - first, data.random, first, &lse);
        __syncwarp();
        if (threadIdx.x % kWarp == 0) {
          data.row = made;
          if (blockIdx.y == 0) keep_row(a, row_index(a, s, head, row + r), made, lse);
        }
      }
      __syncthreads();
    } else {
      each_tile(
          [&](const Rectangle& at, const T(&scores)[kPer][kPer]) { fold_tile(at, scores, false); });
      __syncthreads();
      for (int r = 0; r < kPer; ++r) {
        T factor;
        const Row made = finish_row(r, factor);
        if (member() != 0 || !there(r)) continue;
        tiles.rows[group() * kPer + r].row = made;
        if (blockIdx.y == 0) keep_row(a, index(r), made, Normaliser::lse(made));
      }
      __syncthreads();
    }
  }

  struct WeightSink {
    Distances& distances;
    int r;
    void distance(void* to, const Change& change, const Place& p, T weight) {
      distances.add(to, change, p, r, weight);
    }
  };

  void weigh_values() {
    Distances distances;
    each_tile([&](const Rectangle& at, const T(&scores)[kPer][kPer]) {
      T weights[kPer][kPer] = {};
      Pairs<true>::each_seen(
          a, tiles, at, scores,
          [&](int r, int n, const Place& p, const Scored& scored, const RowData& data) {
            const T weight = weight_of(a, head, scored.e, data.row, p.ordinal);
            weights[r][n] = weight == 0 ? T(0) : weight * dropout_factor(a, data.random, p.j);
            if (blockIdx.y == 0)
              Modifiers::weigh(a.modifier, p, weights[r][n], WeightSink{distances, r});
          });
      add_values(at, weights);
    });
    if constexpr (Modifiers::kAddsValues) {
      const Change& change = *relative_of(a);
      for (int r = 0; r < kPer; ++r)
        distances.finish(blockIdx.y == 0 ? change.weights : nullptr, change, r, index(r), there(r));
    }
  }

  void write(const T (&factors)[kPer]) {
#pragma unroll
    for (int r = 0; r < kPer; ++r) {
#pragma unroll
      for (int c = 0; c < kOutputs; ++c) {
        T x = sums[r][c];
        if constexpr (kNarrow) x = lanes_sum<kSide>(x);
        const int at = kNarrow ? c : column + member() + c * kSide;
        if (!there(r) || at >= kValueWidth || (kNarrow && member() != 0)) continue;
        Value* out =
            row_of<Value>(a.output, s.batch, head, s.first_query + row + group() * kPer + r);
        narrow(factors[r] == 0 ? T(0) : factors[r] * x, out[at]);
      }
    }
  }

  // What a part has beside its sums of values.
  void keep_part() {
    for (int r = 0; r < kPer; ++r) {
      const T sum = lanes_sum<kSide>(total[r]), count = lanes_sum<kSide>(seen[r]);
      const bool spoiled = lanes_any<kSide>(bad[r]);
      if (member() != 0 || !there(r)) continue;
      T* part = part_of(a, index(r), blockIdx.y);
      part[0] = shift[r];
      part[1] = sum;
      part[2] = count;
      part[3] = spoiled ? 1 : 0;
    }
  }

  void run() {
    start();
    T factors[kPer];
    if constexpr (kParted) {
      each_tile(
          [&](const Rectangle& at, const T(&scores)[kPer][kPer]) { fold_tile(at, scores, true); });
      keep_part();
      return;
    }
    if constexpr (kOnePass) {
      each_tile(
          [&](const Rectangle& at, const T(&scores)[kPer][kPer]) { fold_tile(at, scores, true); });
      for (int r = 0; r < kPer; ++r) {
        const Row made = finish_row(r, factors[r]);
        if (blockIdx.y == 0 && member() == 0 && there(r))
          keep_row(a, index(r), made, Normaliser::lse(made));
      }
    } else {
      solve_rows();
      weigh_values();
      for (int r = 0; r < kPer; ++r) factors[r] = 1;
    }
    write(factors);
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(256)
    fovea_forward(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  __shared__ Tiles tiles;
  each_query_tile(a, kTile, [&](const Sequence& s, int head, int row) {
    Forward{a, tiles, s, head, row, kParted ? 0 : static_cast<int>(blockIdx.y) * kChunk}.run();
  });
}
