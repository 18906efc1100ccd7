// Backward on panels, as drivers/tiles/backward.h has it on tiles: the gradient of a query is summed by the
// block that owns its rows, those of a key and its value by the block that owns theirs.
#pragma once

namespace fovea::cuda {

// What the pairs of a rectangle give: weights after dropout, and the numbers g of their scores. Panels:
// own[0], other[0] of queries and keys; own[1], other[1] of the output's gradient and values.
template <bool kOwnerIsQuery>
struct Gradient {
  using P = Pairs<kOwnerIsQuery>;
  const Arguments& a;
  Panels<2>& panels;
  bool finite = false;  // all numbers of the other side
  bool few = false;     // of the warp's pairs have a weight
  Bits bits = 0;        // of pairs with a weight
  Masks masks{};        // where they are few

  // Rows of the queries of a tile: statistics and what else they share.
  void start_rows(const Sequence& s, int head, int row, bool with_delta) {
    for (int r = threadIdx.x; r < P::kRows; r += kThreads) {
      if (row + r >= s.queries) continue;
      RowData data = row_data(a, s, head, row + r);
      const Whole index = row_index(a, s, head, row + r);
      read_statistics(a, index, data);
      if (with_delta) data.delta = static_cast<const T*>(a.delta)[index];
      panels.rows[r] = data;
    }
  }
  Side queries(const Sequence& s, int head, int row) const {
    return side_of(a.query, s.batch, head, s.first_query + row, least(P::kRows, s.queries - row));
  }
  Side outputs(const Sequence& s, int head, int row) const {
    return side_of(a.d_output, s.batch, head, s.first_query + row,
                   least(P::kRows, s.queries - row));
  }
  Side keys(const Sequence& s, int key_head, int key) const {
    return side_of(a.key, s.batch, key_head, s.first_key + key, least(P::kKeys, s.keys - key));
  }
  Side values(const Sequence& s, int key_head, int key) const {
    return side_of(a.value, s.batch, key_head, s.first_key + key, least(P::kKeys, s.keys - key));
  }
  // Waits for the panels of the other side.
  void wait() {
    wait_for_copies<0>();
    const bool mine =
        is_finite_part<kOther>(panels.other[0]) && is_finite_part<kOther>(panels.other[1]);
    finite = __syncthreads_or(!mine) == 0;
  }

  // dO.v of the few pairs, to `products`.
  FOVEA_INLINE void multiply_few() {
    __syncwarp();
    each_pair(masks, [&](const int(&other)[kPerOwn], const bool(&there)[kPerOwn]) {
      T sums[kPerOwn];
#pragma unroll
      for (int r = 0; r < kPerOwn; ++r) {
        const T* x = panels.own[1] + own_row(r) * kPitch + member() * kPack;
        const T* y = panels.other[1] + other[r] * kPitch + member() * kPack;
        sums[r] = 0;
#pragma unroll
        for (int part = 0; part < kColumns / kPack; ++part) {
          const Pack u = pack_at(x + part * kSpan), v = pack_at(y + part * kSpan);
#pragma unroll
          for (int k = 0; k < kPack; ++k) sums[r] += u.x[k] * v.x[k];
        }
      }
#pragma unroll
      for (int r = 0; r < kPerOwn; ++r) {
        const T sum = members_sum(sums[r]);
        if (there[r] && member() == 0) panels.products[own_row(r) * kProductPitch + other[r]] = sum;
      }
    });
    __syncwarp();
  }

  // sums[r] += the products' sums of the other side's rows.
  FOVEA_INLINE void add(const T (&x)[kPerOwn][kPerOther], const T* from,
                        T (&sums)[kPerOwn][kColumns]) {
    if (!few) {
      keep_products(panels.products, x);
      add_rows(panels.products, from, finite, sums);
      return;
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
#pragma unroll
      for (int n = 0; n < kPerOther; ++n)
        if (bits & bit_of(r, n))
          panels.products[own_row(r) * kProductPitch + other_row(n)] = x[r][n];
    }
    __syncwarp();
    each_pair(masks, [&](const int(&other)[kPerOwn], const bool(&there)[kPerOwn]) {
#pragma unroll
      for (int r = 0; r < kPerOwn; ++r) {
        const T p = there[r] ? panels.products[own_row(r) * kProductPitch + other[r]] : T(0);
        const T* y = from + other[r] * kPitch + member() * kPack;
#pragma unroll
        for (int part = 0; part < kColumns / kPack; ++part) {
          const Pack v = pack_at(y + part * kSpan);
#pragma unroll
          for (int k = 0; k < kPack; ++k)
            if (p != 0) sums[r][part * kPack + k] += p * v.x[k];
        }
      }
    });
  }

  // visit(r, n, place, scored, data of the row, weight, factor of dropout, gradient of the weight).
  template <class Visit>
  FOVEA_INLINE void each_weight(const Rectangle& at, Visit visit) {
    T scores[kPerOwn][kPerOther], products[kPerOwn][kPerOther];
    multiply_rows<kWidth>(panels.own[0], panels.other[0], scores);
    const auto weigh = [&](int r, int n, const Place& p, const Scored& scored,
                           const RowData& data) {
      const T weight = weight_of(a, at.head, scored.e, data.row, p.ordinal);
      const T factor = dropout_factor(a, data.random, p.j);
      const T da =
          factor == 0 ? T(0) : factor * (products[r][n] + Modifiers::value_product(a.modifier, p));
      visit(r, n, p, scored, data, weight, factor, da);
    };
    if constexpr (Normaliser::kReaches || Normaliser::kCounts) {
      bits = 0;
      P::each_seen(a, panels.rows, at, scores,
                   [&](int r, int n, const Place& p, const Scored& scored, const RowData& data) {
                     if (weight_of(a, at.head, scored.e, data.row, p.ordinal) != 0)
                       bits |= bit_of(r, n);
                   });
      constexpr int kFew = kWarp * kPerOwn * kPerOther / 16;
      few = lanes_sum(__popcll(bits)) <= kFew;
      if (few) {
        masks = masks_of(bits);
        multiply_few();
#pragma unroll
        for (int r = 0; r < kPerOwn; ++r) {
#pragma unroll
          for (int n = 0; n < kPerOther; ++n)
            products[r][n] = bits & bit_of(r, n)
                                 ? panels.products[own_row(r) * kProductPitch + other_row(n)]
                                 : T(0);
        }
      } else {
        multiply_rows<kValueWidth>(panels.own[1], panels.other[1], products);
      }
      P::template visit_pairs<true>(a, panels.rows, at, scores, bits, weigh);
    } else {
      multiply_rows<kValueWidth>(panels.own[1], panels.other[1], products);
      P::each_seen(a, panels.rows, at, scores, weigh);
    }
  }
};

struct QueryGradient {
  const Arguments& a;
  Panels<2>& panels;
  Sequence s;
  int head, row;
  Gradient<true> gradient{a, panels};
  T sums[kPerOwn][kColumns] = {};
  T slots[kPerOwn][kSlots] = {};
  // Where delta is known only at the end, and gradients are linear in it: what it is taken times.
  static constexpr bool kFolds = Normaliser::kDelta == Delta::kFold && !Normaliser::kAlpha;
  T less_sums[kPerOwn][kColumns] = {}, less_slots[kPerOwn][kSlots] = {};

  bool there(int r) const { return row + own_row(r) < s.queries; }
  Whole index(int r) const { return row_index(a, s, head, row + own_row(r)); }

  template <class Body>
  FOVEA_INLINE void each_tile(Body body) {
    int first, end;
    key_range(a, s, head, row, kOwn, first, end);
    for (int key = first / kOther * kOther; key < end; key += kOther) {
      Rectangle at;
      if (!rectangle_of(a, s, head, row, kOwn, key, kOther, at)) continue;
      __syncthreads();
      stage<kOther, kWidth>(side_of(a.key, s.batch, at.key_head, s.first_key + key, at.keys),
                            panels.other[0]);
      stage<kOther, kValueWidth>(side_of(a.value, s.batch, at.key_head, s.first_key + key, at.keys),
                                 panels.other[1]);
      gradient.wait();
      body(at);
    }
  }

  // delta = dO.o, a warp a row.
  void delta_from_output() {
    const int lane = threadIdx.x % kWarp;
    for (int r = threadIdx.x / kWarp; r < least(kOwn, s.queries - row); r += kThreads / kWarp) {
      const T* d_output = row_of<T>(a.d_output, s.batch, head, s.first_query + row + r);
      const T* output = row_of<T>(a.output, s.batch, head, s.first_query + row + r);
      T sum = 0;
      for (int c = lane; c < kValueWidth; c += kWarp) sum += d_output[c] * output[c];
      sum = lanes_sum(sum);
      if (lane == 0) panels.rows[r].delta = sum;
    }
    __syncthreads();
  }

  // delta = sum w da / sum w, and the sums that the gradient of alpha needs.
  T fold_sums[kPerOwn][3] = {};  // of w, of -a log a, of a log^2 a
  void delta_from_row() {
    T weighted[kPerOwn] = {};
    each_tile([&](const Rectangle& at) {
      gradient.each_weight(
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
    __syncwarp();
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
      const T sum = members_sum(weighted[r]);
      for (int n = 0; n < (Normaliser::kAlpha ? 3 : 1); ++n)
        fold_sums[r][n] = members_sum(fold_sums[r][n]);
      if (member() == 0)
        panels.rows[own_row(r)].delta = fold_sums[r][0] == 0 ? T(0) : sum / fold_sums[r][0];
    }
    __syncwarp();
  }

  struct Sink {
    T (&slots)[kSlots];
    void score(int, T) {}
    void slope(int n, T x) { slots[kFirstChange + n] += x; }
    void distance(void*, const Change&, const Place&, T) {}
  };

  FOVEA_INLINE void add_tile(const Rectangle& at) {
    T g[kPerOwn][kPerOther] = {}, less[kPerOwn][kPerOther] = {};
    gradient.each_weight(at, [&](int r, int n, const Place& p, const Scored& scored,
                                 const RowData& data, T weight, T, T da) {
      T de = gradient_of(a, head, weight, da, scored.e, data);
      if constexpr (kFolds) {
        T one = gradient_of(a, head, weight, T(1), scored.e, data);
        fold_sums[r][0] += one;
        fold_sums[r][1] += de;
        one = Modifiers::backward(a.modifier, p, scored.steps, one, 0, Sink{less_slots[r]});
        less[r][n] = Score::slope(a, scored.sum, data.inverse, one);
      }
      if constexpr (Normaliser::kAlpha)
        slots[r][kParameterSlot] += da * Normaliser::alpha_slope(a, head, weight, fold_sums[r][0],
                                                                 fold_sums[r][1], fold_sums[r][2]);
      de = Modifiers::backward(a.modifier, p, scored.steps, de, 0, Sink{slots[r]});
      g[r][n] = Score::slope(a, scored.sum, data.inverse, de);
    });
    gradient.add(g, panels.other[0], sums);
    if constexpr (kFolds) gradient.add(less, panels.other[0], less_sums);
  }

  // delta = sum w da / sum w, known now.
  void take_less() {
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
      const T sum = members_sum(fold_sums[r][0]), weighted = members_sum(fold_sums[r][1]);
      const T delta = sum == 0 ? T(0) : weighted / sum;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sums[r][c] -= delta * less_sums[r][c];
#pragma unroll
      for (int n = 0; n < kSlots; ++n) slots[r][n] -= delta * less_slots[r][n];
      if (member() == 0) panels.rows[own_row(r)].delta = delta;
    }
    __syncwarp();
  }

  void write() {
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
      if (!there(r)) continue;
      T* out = row_of<T>(a.d_query, s.batch, head, s.first_query + row + own_row(r));
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        if (column_of(c) < kWidth) out[column_of(c)] = sums[r][c];
    }
  }

  void write_slots() {
#pragma unroll
    for (int r = 0; r < kPerOwn; ++r) {
      const RowData& data = panels.rows[own_row(r)];
#pragma unroll
      for (int n = 0; n < kSlots; ++n) {
        T x = members_sum(slots[r][n]);
        if (n == kParameterSlot && Normaliser::kParameter) {
          if constexpr (!Normaliser::kAlpha)
            x = Normaliser::parameter_gradient(a, head, data.row, data.delta, data.d_lse);
          if (data.row.state == kSpoiled) x = nan_of(T());
          if (data.row.state == kEmpty) x = 0;
        }
        if (member() == 0 && there(r)) static_cast<T*>(a.row_gradients)[n * a.rows + index(r)] = x;
      }
      if (member() == 0 && there(r)) static_cast<T*>(a.delta)[index(r)] = data.delta;
    }
  }

  void run() {
    __syncthreads();
    stage<kOwn, kWidth>(gradient.queries(s, head, row), panels.own[0]);
    stage<kOwn, kValueWidth>(gradient.outputs(s, head, row), panels.own[1]);
    gradient.start_rows(s, head, row, false);
    __syncthreads();
    if constexpr (Normaliser::kDelta == Delta::kFromOutput) delta_from_output();
    if constexpr (Normaliser::kDelta == Delta::kFold && !kFolds) delta_from_row();
    each_tile([&](const Rectangle& at) { add_tile(at); });
    if constexpr (kFolds) take_less();
    write();
    write_slots();
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(fovea::cuda::kThreads, fovea::cuda::kResident)
    fovea_gradient_query(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(shared);
  auto& panels = *reinterpret_cast<Panels<2>*>(shared);
  each_query_tile(a, kOwn, [&](const Sequence& s, int head, int row) {
    QueryGradient{a, panels, s, head, row}.run();
  });
}
