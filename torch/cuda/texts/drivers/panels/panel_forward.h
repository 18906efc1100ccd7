// Forward on panels: a block owns kOwn queries.
#pragma once

namespace fovea::cuda {

struct PanelForward {
  const Arguments& a;
  Panels<1>& panels;
  Sequence s;
  int head, row;
  T sums[kPerOwn][kColumns] = {};
  T shift[kPerOwn], total[kPerOwn] = {}, seen[kPerOwn] = {};
  T look[kPerOwn] = {};  // not 0 once a score is no number
  static constexpr bool kListed = Normaliser::kReaches || Normaliser::kCounts;

  // body(rectangle, scores) for the tiles of keys that the tile of queries meets, in order.
  template <bool kWithValues, class Body>
  FOVEA_INLINE void each_tile(Body body) {
    int first, end;
    key_range(a, s, head, row, kOwn, first, end);
    for (int key = first / kOther * kOther; key < end; key += kOther) {
      Rectangle at;
      if (!rectangle_of(a, s, head, row, kOwn, key, kOther, at)) continue;
      __syncthreads();
      stage<kOther, kWidth>(side_of(a.key, s.batch, at.key_head, s.first_key + key, at.keys),
                            panels.other[0]);
      if constexpr (kWithValues)
        stage<kOther, kValueWidth>(
            side_of(a.value, s.batch, at.key_head, s.first_key + key, at.keys), panels.other[1]);
      wait_for_copies<kWithValues ? 1 : 0>();
      __syncthreads();
      T scores[kPerOwn][kPerOther];
      multiply_rows<kWidth>(panels.own[0], panels.other[0], scores);
      body(at, scores);
    }
  }

  void start() {
    __syncthreads();
    stage<kOwn, kWidth>(
        side_of(a.query, s.batch, head, s.first_query + row, least(kOwn, s.queries - row)),
        panels.own[0]);
    for (int r = threadIdx.x; r < kOwn; r += kThreads)
      if (row + r < s.queries) panels.rows[r] = row_data(a, s, head, row + r);
    wait_for_copies<0>();
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) shift[r] = -infinity_of(T());
  }
  bool there(int r) const { return row + own_row(r) < s.queries; }
  Whole index(int r) const { return row_index(a, s, head, row + own_row(r)); }

  // Scores of the pairs as they are after the modifiers, -infinity where a pair is not seen.
  FOVEA_INLINE void finish_scores(const Rectangle& at, T (&scores)[kPerOwn][kPerOther]) {
    T e[kPerOwn][kPerOther];
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
#pragma unroll
      for (int n = 0; n < kPerOther; ++n) e[r][n] = -infinity_of(T());
    }
    Pairs<true>::each_seen(a, panels.rows, at, scores,
                           [&](int r, int n, const Place&, const Scored& scored, const RowData&) {
                             e[r][n] = scored.e;
                           });
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
#pragma unroll
      for (int n = 0; n < kPerOther; ++n) scores[r][n] = e[r][n];
    }
  }

  // weights[r][n] of a tile's pairs, to the sums of values.
  FOVEA_INLINE void add_values(const T (&weights)[kPerOwn][kPerOther]) {
    keep_products(panels.products, weights);
    wait_for_copies<0>();
    const bool finite = __syncthreads_or(!is_finite_part<kOther>(panels.other[1])) == 0;
    add_rows(panels.products, panels.other[1], finite, sums);
  }

  FOVEA_INLINE void drop(const Rectangle& at, T (&weights)[kPerOwn][kPerOther]) {
    if constexpr (kDropout) {
#pragma unroll
      for (int r = 0; r < kPerOwn; ++r) {
        const auto random = panels.rows[own_row(r)].random;
#pragma unroll
        for (int n = 0; n < kPerOther; ++n)
          weights[r][n] *= dropout_factor(a, random, at.key + other_row(n));
      }
    }
  }

  // ---- one pass: powers, brought to a new shift when a larger score comes ----

  FOVEA_INLINE void fold_tile(const Rectangle& at, T (&scores)[kPerOwn][kPerOther]) {
    finish_scores(at, scores);
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
      if constexpr (Normaliser::kShifts) {
        T top = shift[r];
#pragma unroll
        for (int n = 0; n < kPerOther; ++n) top = larger(top, scores[r][n]);
        top = members_max(top);
        if (top > shift[r]) {
          const T rescale = shift[r] == -infinity_of(T()) ? T(0) : exponential(shift[r] - top);
          total[r] *= rescale;
#pragma unroll
          for (int c = 0; c < kColumns; ++c) sums[r][c] *= rescale;
          shift[r] = top;
        }
        // A score that is no number leaves none in the sum of powers.
        const T base = shift[r] == -infinity_of(T()) ? T(0) : shift[r];
#pragma unroll
        for (int n = 0; n < kPerOther; ++n) {
          scores[r][n] = Normaliser::power(scores[r][n], base);
          total[r] += scores[r][n];
        }
      } else {
#pragma unroll
        for (int n = 0; n < kPerOther; ++n) {
          const T e = scores[r][n];
          const bool is_seen = e != -infinity_of(T());
          if (Normaliser::kLooks) look[r] += is_seen ? e * 0 : T(0);
          scores[r][n] = is_seen ? Normaliser::power(e, shift[r]) : T(0);
          total[r] += scores[r][n];
          seen[r] += is_seen ? T(1) : T(0);
        }
      }
    }
    drop(at, scores);
    add_values(scores);
  }

  Row finish_row(int r, T& factor) {
    const T sum = members_sum(total[r]), count = members_sum(seen[r]),
            looked = members_sum(look[r]);
    const bool spoiled =
        Normaliser::kLooks && (Normaliser::kShifts ? !is_finite(sum) : looked != 0);
    factor = 0;
    Row made{0, 0, 0, kEmpty};
    if (spoiled) {
      made.state = kSpoiled;
      factor = nan_of(T());
    } else if (Normaliser::kShifts ? shift[r] > -infinity_of(T()) : count > 0) {
      made = Normaliser::finish(a, head, shift[r], sum, count);
      factor = Normaliser::factor(shift[r], made);
    }
    return made;
  }

  // ---- two passes: rows first, then weights ----

  T* scores_of(int r) const {
    return static_cast<T*>(a.scratch) +
           (static_cast<Whole>(blockIdx.x) * kOwn + r) * 2 * a.scratch_row;
  }
  int* keys_of(int r) const { return reinterpret_cast<int*>(scores_of(r) + a.scratch_row); }

  // The largest scores of a thread's keys of a tile, at most one of each tile: where each thread of a
  // group has k / kMembers of them, the row has k scores as large as the least.
  static constexpr int kMost = 4;
  struct Largest {
    T x[kMost];
    void add(T e) {
#pragma unroll
      for (int n = 0; n < kMost; ++n) {
        const T top = x[n];
        x[n] = larger(top, e);
        e = e < top ? e : top;
      }
    }
    T bound(Whole k) const {
      T bound = -infinity_of(T());
#pragma unroll
      for (int n = 0; n < kMost; ++n)
        bound = k <= (n + 1) * kMembers && k > n * kMembers ? x[n] : bound;
      return -members_max(-bound);
    }
  };

  // Lists of the scores that may have a weight, a row's in the order of their keys.
  FOVEA_INLINE void list_scores(int (&counts)[kPerOwn]) {
    const T reach = Normaliser::reach(a, head);
    Largest largest[kPerOwn];
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
#pragma unroll
      for (int n = 0; n < kMost; ++n) largest[r].x[n] = -infinity_of(T());
    }
    each_tile<false>([&](const Rectangle& at, T(&scores)[kPerOwn][kPerOther]) {
      finish_scores(at, scores);
#pragma unroll
      for (int r = 0; r < kPerOwn; ++r) {
        T top = -infinity_of(T());
#pragma unroll
        for (int n = 0; n < kPerOther; ++n) {
          const T e = scores[r][n];
          look[r] += e == -infinity_of(T()) ? T(0) : e * 0;
          top = larger(top, e);
        }
        T bound;
        if constexpr (Normaliser::kCounts) {
          largest[r].add(top);
          bound = largest[r].bound(a.k);
        } else {
          shift[r] = larger(shift[r], members_max(top));
          bound = shift[r] - reach;
        }
        T* const list = scores_of(own_row(r));
        int* const keys = keys_of(own_row(r));
#pragma unroll
        for (int n = 0; n < kPerOther; ++n) {
          const T e = scores[r][n];
          const bool taken = e > -infinity_of(T()) && e >= bound;
          const unsigned all = __ballot_sync(~0u, taken);
          if (all == 0) continue;
          const unsigned mine = members_of(all);
          if (taken) {
            const int place = counts[r] + __popc(mine & ((1u << member()) - 1));
            list[place] = e;
            keys[place] = at.key + other_row(n);
          }
          counts[r] += __popc(mine);
        }
      }
    });
  }

  // All scores of the rows, -infinity where a pair is not seen, from the key `first` on.
  FOVEA_INLINE void keep_scores(int (&counts)[kPerOwn], int& first) {
    first = -1;
    int end = 0;
    each_tile<false>([&](const Rectangle& at, T(&scores)[kPerOwn][kPerOther]) {
      finish_scores(at, scores);
      if (first < 0) first = end = at.key;
      for (; end < at.key; end += kOther) {
        for (int r = 0; r < kPerOwn; ++r)
          for (int n = 0; n < kPerOther; ++n)
            scores_of(own_row(r))[end - first + other_row(n)] = -infinity_of(T());
      }
      end = at.key + kOther;
#pragma unroll
      for (int r = 0; r < kPerOwn; ++r) {
        T* const to = scores_of(own_row(r)) + (at.key - first);
#pragma unroll
        for (int n = 0; n < kPerOther; ++n) {
          const T e = scores[r][n];
          look[r] += e == -infinity_of(T()) ? T(0) : e * 0;
          to[other_row(n)] = e;
        }
      }
    });
    for (int r = 0; r < kPerOwn; ++r) counts[r] = first < 0 ? 0 : end - first;
  }

  void solve_rows() {
    int counts[kPerOwn] = {}, first = 0;
    if constexpr (kListed)
      list_scores(counts);
    else
      keep_scores(counts, first);
    __syncwarp();
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
      const bool spoiled = members_sum(look[r]) != 0;
      if (member() == 0) panels.counts[own_row(r)] = spoiled ? -1 : counts[r];
    }
    __syncwarp();
    __syncthreads();  // panels of keys and values are free
    // The rows of a warp's groups, one after another. Short ones are brought nearer.
    constexpr int kOfWarp = kWarp / kMembers, kNear = 2 * kOther * kPitch / (kThreads / kWarp);
    T* const near = panels.other[0] + threadIdx.x / kWarp * kNear;
    for (int n = 0; n < kPerOwn * kOfWarp; ++n) {
      const int r = threadIdx.x / kWarp * kOfWarp + n % kOfWarp + n / kOfWarp * kGroups;
      if (row + r >= s.queries) continue;
      RowData& data = panels.rows[r];
      T lse = -infinity_of(T());
      Row made{0, 0, 0, kSpoiled};
      const int count = panels.counts[r];
      const T* scores = scores_of(r);
      if (count <= kNear) {
        for (int m = threadIdx.x % kWarp; m < count; m += kWarp) near[m] = scores[m];
        scores = near;
        __syncwarp();
      }
      if (count >= 0)
        made = Normaliser::solve(a, head, scores, count, data.random, most(0, first), &lse);
      if (kListed && made.state >= kSeen) Normaliser::name_key(made, keys_of(r));
      __syncwarp();
      if (threadIdx.x % kWarp == 0) {
        data.row = made;
        keep_row(a, row_index(a, s, head, row + r), made, lse);
      }
    }
    __syncthreads();
    if constexpr (kListed)
      add_listed(counts);
    else
      weigh_values();
  }

  // The listed keys' values, times their weights.
  void add_listed(const int (&counts)[kPerOwn]) {
    const Side values =
        side_of(a.value, s.batch, head / (a.heads / a.key_heads), s.first_key, s.keys);
    const bool whole = kValueWidth % kPack == 0 && values.row % kPack == 0 &&
                       reinterpret_cast<unsigned long long>(values.data) % 16 == 0;
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
      const RowData& data = panels.rows[own_row(r)];
      const int count = data.row.state == kSpoiled ? 0 : there(r) ? counts[r] : 0;
      const T* const list = scores_of(own_row(r));
      const int* const keys = keys_of(own_row(r));
      for (int n = 0; __ballot_sync(~0u, n < count) != 0; n += kMembers) {
        T weight = 0;
        int key = 0;
        if (n + member() < count) {
          key = keys[n + member()];
          weight = weight_of(a, head, list[n + member()], data.row, key);
          if (weight != 0) weight *= dropout_factor(a, data.random, key);
        }
        constexpr int kBatch = 4;
#pragma unroll
        for (int m = 0; m < kMembers; m += kBatch) {
          T w[kBatch];
          Pack x[kBatch][kColumns / kPack];
#pragma unroll
          for (int k = 0; k < kBatch; ++k) {
            w[k] = __shfl_sync(~0u, weight, lane_of(m + k));
            const T* const from = values.data + __shfl_sync(~0u, key, lane_of(m + k)) * values.row;
#pragma unroll
            for (int part = 0; part < kColumns / kPack; ++part) {
              const int c = part * kSpan + member() * kPack;
              x[k][part] = {};
              if (w[k] == 0) continue;
              if (whole) {
                if (c < kValueWidth) x[k][part] = pack_at(from + c);
              } else {
                for (int q = 0; q < kPack; ++q)
                  if (c + q < kValueWidth) x[k][part].x[q] = from[c + q];
              }
            }
          }
#pragma unroll
          for (int k = 0; k < kBatch; ++k) {
#pragma unroll
            for (int c = 0; c < kColumns; ++c) sums[r][c] += w[k] * x[k][c / kPack].x[c % kPack];
          }
        }
      }
    }
  }

  void weigh_values() {
    each_tile<true>([&](const Rectangle& at, T(&scores)[kPerOwn][kPerOther]) {
      T weights[kPerOwn][kPerOther] = {};
      Pairs<true>::each_seen(
          a, panels.rows, at, scores,
          [&](int r, int n, const Place& p, const Scored& scored, const RowData& data) {
            weights[r][n] = weight_of(a, head, scored.e, data.row, p.ordinal);
          });
      drop(at, weights);
      add_values(weights);
    });
  }

  void write(const T (&factors)[kPerOwn]) {
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
      if (!there(r)) continue;
      T* out = row_of<T>(a.output, s.batch, head, s.first_query + row + own_row(r));
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const int at = column_of(c);
        if (at < kValueWidth) out[at] = factors[r] == 0 ? T(0) : factors[r] * sums[r][c];
      }
    }
  }

  void run() {
    start();
    T factors[kPerOwn];
    if constexpr (!Normaliser::kThreshold) {
      each_tile<true>(
          [&](const Rectangle& at, T(&scores)[kPerOwn][kPerOther]) { fold_tile(at, scores); });
#pragma unroll
      for (int r = 0; r < kPerOwn; ++r) {
        const Row made = finish_row(r, factors[r]);
        if (member() == 0 && there(r)) keep_row(a, index(r), made, Normaliser::lse(made));
      }
    } else {
      solve_rows();
#pragma unroll
      for (int r = 0; r < kPerOwn; ++r)
        factors[r] = panels.rows[own_row(r)].row.state == kSpoiled ? nan_of(T()) : T(1);
    }
    write(factors);
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(fovea::cuda::kThreads, fovea::cuda::kResident)
    fovea_forward(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(shared);
  auto& panels = *reinterpret_cast<Panels<1>*>(shared);
  each_query_tile(a, kOwn, [&](const Sequence& s, int head, int row) {
    PanelForward{a, panels, s, head, row}.run();
  });
}
