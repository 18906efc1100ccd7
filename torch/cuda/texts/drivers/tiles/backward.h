// Backward on tiles, without atomics: the gradient of a query is summed by the block that owns its
// tile, those of a key and its value by the block that owns theirs (backward_key.h); scores are
// computed again.
#pragma once

namespace fovea::cuda {

constexpr int kQueryColumns = columns_of(kFeatures, kFeatureChunk);
constexpr int kValueColumns = columns_of(kValueWidth, kChunk);

// What the pairs of a rectangle give: weights after dropout, and the numbers g of their scores.
template <bool kOwnerIsQuery>
struct Gradient {
  using P = Pairs<kOwnerIsQuery>;
  const Arguments& a;
  Tiles& tiles;

  // dO.v of the pairs.
  void sum_products(const Rectangle& at, T (&products)[kPer][kPer]) {
    const auto outputs =
        side_of<Value>(a.d_output, at.s.batch, at.head, at.s.first_query + at.row, at.rows);
    const auto values =
        side_of<Value>(a.value, at.s.batch, at.key_head, at.s.first_key + at.key, at.keys);
    const auto step = [](T sum, const T* x, const T* y, T) { return sum + x[0] * y[0]; };
    if constexpr (kOwnerIsQuery)
      sum_features<1, kValueWidth>(tiles, outputs, values, nullptr, 0, products, step);
    else
      sum_features<1, kValueWidth>(tiles, values, outputs, nullptr, 0, products, step);
  }

  // visit(r, n, place, scored, data, weight, factor of dropout, gradient of the weight).
  template <class Visit>
  void each_weight(const Rectangle& at, Visit visit) {
    T scores[kPer][kPer], products[kPer][kPer];
    P::sum_scores(a, tiles, at, scores);
    sum_products(at, products);
    P::each_seen(a, tiles, at, scores,
                 [&](int r, int n, const Place& p, const Scored& scored, const RowData& data) {
                   const T weight = weight_of(a, at.head, scored.e, data.row, p.ordinal);
                   const T factor = dropout_factor(a, data.random, p.j);
                   const T da =
                       factor == 0
                           ? T(0)
                           : factor * (products[r][n] + Modifiers::value_product(a.modifier, p));
                   visit(r, n, p, scored, data, weight, factor, da);
                 });
  }

  // Rows of the queries of a tile: statistics and what else they share.
  void start_rows(const Sequence& s, int head, int row, bool with_delta) {
    __syncthreads();
    for (int r = threadIdx.x; r < kTile; r += kThreads) {
      if (row + r >= s.queries) continue;
      RowData data = row_data(a, s, head, row + r);
      const Whole index = row_index(a, s, head, row + r);
      read_statistics(a, index, data);
      if (with_delta) data.delta = static_cast<const T*>(a.delta)[index];
      tiles.rows[r] = data;
    }
    __syncthreads();
  }

  // g of the pairs to products[other][owner], zero where a pair is not seen.
  void keep_products(const T (&x)[kPer][kPer]) {
    __syncthreads();
#pragma unroll
    for (int n = 0; n < kPer; ++n) {
#pragma unroll
      for (int r = 0; r < kPer; ++r)
        tiles.products[member() * kPer + n][group() * kPer + r] = x[r][n];
    }
    __syncthreads();
  }

  // sums += terms of g, the owner's features and the other's, over the other's rows.
  template <class Stored, int kColumns, class Terms>
  void sum_terms(const Side<Stored>& owner, const Side<Stored>& other, int feature,
                 T (&sums)[kPer][kColumns][Score::kComponents], Terms terms) {
    constexpr int kParts = Score::kComponents, kStaged = kColumns * kSide;
    T own[kPer][kColumns][kParts] = {};
    if constexpr (Score::kOwn) {
#pragma unroll
      for (int r = 0; r < kPer; ++r) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          const int f = feature + member() + c * kSide, at = group() * kPer + r;
          if (f >= kFeatures || at >= owner.count) continue;
#pragma unroll
          for (int part = 0; part < kParts; ++part)
            own[r][c][part] =
                static_cast<T>(widen(owner.data[at * owner.row + part * kFeatures + f]));
        }
      }
    }
    for (int first = 0; first < other.count; first += kStep) {
      const bool finite =
          stage_rows<kParts, kStaged>(other, first, feature, kFeatures, kFeatures, tiles.stage);
      const int rows = least(kStep, other.count - first);
      for (int o = 0; o < rows; ++o) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          T theirs[kParts];
#pragma unroll
          for (int part = 0; part < kParts; ++part)
            theirs[part] = tiles.stage[(o * kParts + part) * kStaged + member() + c * kSide];
#pragma unroll
          for (int r = 0; r < kPer; ++r) {
            const T g = tiles.products[first + o][group() * kPer + r];
            if ((finite && !Score::kOwn) || g != 0) terms(r, c, g, own[r][c], theirs, sums[r][c]);
          }
        }
      }
      __syncthreads();
    }
  }
};

struct QueryGradient {
  const Arguments& a;
  Tiles& tiles;
  Sequence s;
  int head, row, tile, feature;
  T sums[kPer][kQueryColumns][Score::kComponents] = {};
  T weights[kQueryColumns] = {};
  T slots[kPer][kSlots] = {};
  Distances weight_distances, score_distances;

  Gradient<true> gradient() { return {a, tiles}; }
  bool first_chunk() const { return blockIdx.y == 0; }
  bool there(int r) const { return row + group() * kPer + r < s.queries; }
  Whole index(int r) const { return row_index(a, s, head, row + group() * kPer + r); }

  template <class Body>
  void each_tile(Body body) {
    int first, end;
    key_range(a, s, head, row, kTile, first, end);
    for (int key = first / kTile * kTile; key < end; key += kTile) {
      Rectangle at;
      if (rectangle_of(a, s, head, row, key, at)) body(at);
    }
  }

  // delta = dO.o, a warp a row.
  void delta_from_output() {
    const int lane = threadIdx.x % kWarp;
    for (int r = threadIdx.x / kWarp; r < least(kTile, s.queries - row); r += kThreads / kWarp) {
      const Value* d_output = row_of<Value>(a.d_output, s.batch, head, s.first_query + row + r);
      const Value* output = row_of<Value>(a.output, s.batch, head, s.first_query + row + r);
      T sum = 0;
      for (int c = lane; c < kValueWidth; c += kWarp)
        sum += static_cast<T>(widen(d_output[c])) * static_cast<T>(widen(output[c]));
      sum = lanes_sum(sum);
      if (lane == 0) tiles.rows[r].delta = sum;
    }
    __syncthreads();
  }

  // delta = sum w da / sum w, and the sums that the gradient of alpha needs.
  T fold_sums[kPer][3] = {};  // of w, of -a log a, of a log^2 a
  void delta_from_row() {
    T weighted[kPer] = {};
    each_tile([&](const Rectangle& at) {
      gradient().each_weight(
          at, [&](int r, int, const Place&, const Scored&, const RowData&, T weight, T, T da) {
            const T w = Normaliser::fold_weight(a, head, weight);
            if (w != 0) weighted[r] += w * da;
            fold_sums[r][0] += w;
            if constexpr (Normaliser::kAlpha) {
              if (weight > 0) {
                const T log = logarithm(weight);
                fold_sums[r][1] -= weight * log;
                fold_sums[r][2] += weight * log * log;
              }
            }
          });
    });
    __syncthreads();
    for (int r = 0; r < kPer; ++r) {
      const T sum = lanes_sum<kSide>(weighted[r]);
      for (int n = 0; n < (Normaliser::kAlpha ? 3 : 1); ++n)
        fold_sums[r][n] = lanes_sum<kSide>(fold_sums[r][n]);
      if (member() == 0)
        tiles.rows[group() * kPer + r].delta = fold_sums[r][0] == 0 ? T(0) : sum / fold_sums[r][0];
    }
    __syncthreads();
  }

  struct Sink {
    QueryGradient& to;
    const Place& p;
    int r;
    void score(int, T) {}
    void slope(int n, T x) { to.slots[r][kFirstChange + n] += x; }
    void distance(void* sums, const Change& change, const Place& place, T de) {
      if (to.first_chunk()) to.score_distances.add(sums, change, place, r, de);
    }
  };
  struct WeightSink {
    QueryGradient& to;
    int r;
    void distance(void* sums, const Change& change, const Place& p, T weight) {
      if (to.first_chunk()) to.weight_distances.add(sums, change, p, r, weight);
    }
  };

  void add_tile(const Rectangle& at) {
    T g[kPer][kPer] = {};
    gradient().each_weight(at, [&](int r, int n, const Place& p, const Scored& scored,
                                   const RowData& data, T weight, T factor, T da) {
      T de = gradient_of(a, head, weight, da, scored.e, data);
      if constexpr (Normaliser::kAlpha)
        slots[r][kParameterSlot] += da * Normaliser::alpha_slope(a, head, weight, fold_sums[r][0],
                                                                 fold_sums[r][1], fold_sums[r][2]);
      Modifiers::weigh(a.modifier, p, factor == 0 ? T(0) : factor * weight, WeightSink{*this, r});
      de = Modifiers::backward(a.modifier, p, scored.steps, de, 0, Sink{*this, p, r});
      if constexpr (Score::kDirect) {
        if constexpr (Score::kGivesQuery) {
          if (first_chunk())
            narrow(de, row_of<Operand>(a.d_query, s.batch, head, s.first_query + p.row)[p.j]);
        }
      } else {
        if constexpr (Score::kBandwidth)
          slots[r][kBandwidthSlot] += Score::bandwidth_slope(a, scored.sum, data.inverse, de);
        g[r][n] = Score::slope(a, scored.sum, data.inverse, de);
      }
    });
    if constexpr (!Score::kDirect) {
      gradient().keep_products(g);
      const auto queries = side_of<Operand>(a.query, s.batch, head, s.first_query + row, at.rows);
      const auto keys =
          side_of<Operand>(a.key, s.batch, at.key_head, s.first_key + at.key, at.keys);
      gradient().sum_terms(queries, keys, feature, sums,
                           [&](int, int c, T x, const T* q, const T* k, T* to) {
                             Score::query_terms(x, q, k, to);
                             if constexpr (Score::kWeighted)
                               weights[c] += Score::weight_term(x, q, k);
                           });
    }
  }

  void write_features() {
    if constexpr (!Score::kDirect) {
      for (int c = 0; c < kQueryColumns; ++c) {
        const int f = feature + member() + c * kSide;
        const T w = Score::kWeighted && f < kFeatures ? element<T>(a.weight, 0, head, 0, f) : T(1);
        for (int r = 0; r < kPer; ++r) {
          if (!there(r) || f >= kFeatures) continue;
          Operand* out =
              row_of<Operand>(a.d_query, s.batch, head, s.first_query + row + group() * kPer + r);
          for (int part = 0; part < Score::kComponents; ++part)
            narrow(w * sums[r][c][part], out[part * kFeatures + f]);
        }
      }
    }
    // The weight's gradient of this tile: over the groups of threads, in order.
    if constexpr (Score::kWeighted) {
      const int query_tiles = (a.queries + kTile - 1) / kTile;
      T* out = static_cast<T*>(a.d_weight) +
               ((static_cast<Whole>(s.batch) * a.heads + head) * query_tiles + tile) * kFeatures;
      for (int c = 0; c < kQueryColumns; ++c) {
        __syncthreads();
        tiles.stage[threadIdx.x] = weights[c];
        __syncthreads();
        const int f = feature + member() + c * kSide;
        if (group() != 0 || f >= kFeatures) continue;
        T sum = 0;
        for (int n = 0; n < kSide; ++n) sum += tiles.stage[n * kSide + member()];
        out[f] = sum;
      }
    }
  }

  void write_slots() {
    for (int r = 0; r < kPer; ++r) {
      const RowData& data = tiles.rows[group() * kPer + r];
      for (int n = 0; n < kSlots; ++n) {
        T x = lanes_sum<kSide>(slots[r][n]);
        if (n == kParameterSlot && Normaliser::kParameter) {
          if constexpr (!Normaliser::kAlpha)
            x = Normaliser::parameter_gradient(a, head, data.row, data.delta, data.d_lse);
          if (data.row.state == kSpoiled) x = nan_of(T());
          if (data.row.state == kEmpty) x = 0;
        }
        if (first_chunk() && member() == 0 && there(r))
          static_cast<T*>(a.row_gradients)[n * a.rows + index(r)] = x;
      }
      if (first_chunk() && member() == 0 && there(r))
        static_cast<T*>(a.delta)[index(r)] = data.delta;
    }
    if constexpr (Modifiers::kAddsValues) {
      const Change& change = *relative_of(a);
      for (int r = 0; r < kPer; ++r) {
        weight_distances.finish(first_chunk() ? change.weights : nullptr, change, r, index(r),
                                there(r));
        score_distances.finish(first_chunk() ? change.d_scores : nullptr, change, r, index(r),
                               there(r));
      }
    }
  }

  void run() {
    gradient().start_rows(s, head, row, false);
    if constexpr (Normaliser::kDelta == Delta::kFromOutput) delta_from_output();
    if constexpr (Normaliser::kDelta == Delta::kFold) delta_from_row();
    each_tile([&](const Rectangle& at) { add_tile(at); });
    __syncthreads();
    write_features();
    write_slots();
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(256)
    fovea_gradient_query(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  __shared__ Tiles tiles;
  each_query_tile(a, kTile, [&](const Sequence& s, int head, int row) {
    QueryGradient{a, tiles, s, head, row, row / kTile, static_cast<int>(blockIdx.y) * kFeatureChunk}
        .run();
  });
}
