// Backward on a graph: rows own the queries' gradients, keys their own through the transposed graph.
#pragma once

namespace fovea::cuda {

struct GraphQueryGradient : GraphRow {
  T sums[Score::kComponents][kFeatureLanes] = {};
  T weights[kFeatureLanes] = {};
  T slots[kSlots] = {};

  T da_of(const Place& p, const Columns& value, const Columns& d_output, T factor) const {
    if (factor == 0) return 0;
    return factor * (product(d_output, value) + Modifiers::value_product(a.modifier, p));
  }

  struct Sink : DistanceSums {
    GraphQueryGradient& to;
    Sink(GraphQueryGradient& row) : to(row) {}
    void score(int, T) {}
    void slope(int n, T x) { to.slots[kFirstChange + n] += x; }
  };

  void run() {
    start(true);
    Columns d_output;
    d_output.read(row_of<Value>(a.d_output, 0, head, row), kValueWidth);
    T w_sum = 0, entropy = 0, squares = 0;
    if constexpr (Normaliser::kDelta == Delta::kFromOutput) {
      Columns output;
      output.read(row_of<Value>(a.output, 0, head, row), kValueWidth);
      data.delta = product(d_output, output);
    }
    if constexpr (Normaliser::kDelta == Delta::kFold) {
      T weighted = 0;
      each_seen<true>([&](const Place& p, const Scored& scored, const Edge& edge) {
        const T weight = weight_of(a, head, scored.e, data.row, p.ordinal);
        const T w = Normaliser::fold_weight(a, head, weight);
        if (w == 0) return;
        weighted += w * da_of(p, edge.value, d_output, dropout_factor(a, data.random, p.j));
        w_sum += w;
        if (weight > 0) {
          const T log = logarithm(weight);
          entropy -= weight * log;
          squares += weight * log * log;
        }
      });
      data.delta = w_sum == 0 ? T(0) : weighted / w_sum;
    }
    each_seen<true>([&](const Place& p, const Scored& scored, const Edge& edge) {
      const T weight = weight_of(a, head, scored.e, data.row, p.ordinal);
      const T factor = dropout_factor(a, data.random, p.j),
              da = da_of(p, edge.value, d_output, factor);
      T de = gradient_of(a, head, weight, da, scored.e, data);
      if constexpr (Normaliser::kAlpha)
        slots[kParameterSlot] +=
            da * Normaliser::alpha_slope(a, head, weight, w_sum, entropy, squares);
      Sink sink(*this);
      Modifiers::weigh(a.modifier, p, factor == 0 ? T(0) : factor * weight, sink);
      de = Modifiers::backward(a.modifier, p, scored.steps, de, 0, sink);
      if constexpr (Score::kDirect) {
        if constexpr (Score::kGivesQuery) {
          if (lane() == 0) {
            Operand& to = row_of<Operand>(a.d_query, 0, head, row)[p.j];
            narrow(static_cast<T>(widen(to)) + de, to);
          }
        }
      } else {
        if constexpr (Score::kBandwidth)
          slots[kBandwidthSlot] += Score::bandwidth_slope(a, scored.sum, data.inverse, de);
        const T g = Score::slope(a, scored.sum, data.inverse, de);
        if (g == 0) return;
#pragma unroll
        for (int n = 0; n < kFeatureLanes; ++n) {
          T terms[Score::kComponents] = {};
          Score::query_terms(g, query.x[n], edge.key.x[n], terms);
#pragma unroll
          for (int part = 0; part < Score::kComponents; ++part) sums[part][n] += terms[part];
          if constexpr (Score::kWeighted)
            weights[n] += Score::weight_term(g, query.x[n], edge.key.x[n]);
        }
      }
    });
    write();
  }

  void write() {
    if constexpr (!Score::kDirect) {
#pragma unroll
      for (int n = 0; n < kFeatureLanes; ++n) {
#pragma unroll
        for (int part = 0; part < Score::kComponents; ++part)
          sums[part][n] *= feature_weight(a, head, n);
      }
      cuda::write_features(row_of<Operand>(a.d_query, 0, head, row), sums);
      if constexpr (Score::kWeighted) {
        T* out =
            static_cast<T*>(a.d_weight) + (static_cast<Whole>(head) * a.queries + row) * kFeatures;
        if constexpr (kFeatureLanes >= kPiece)
          write_row(out, kFeatures, weights);
        else if (lane() == 0)
          *out = weights[0];
      }
    }
    if (lane() != 0) return;
    static_cast<T*>(a.delta)[index] = data.delta;
    for (int n = 0; n < kSlots; ++n) {
      T x = slots[n];
      if (n == kParameterSlot && Normaliser::kParameter) {
        if constexpr (!Normaliser::kAlpha)
          x = Normaliser::parameter_gradient(a, head, data.row, data.delta, data.d_lse);
        if (data.row.state == kSpoiled) x = nan_of(T());
        if (data.row.state == kEmpty) x = 0;
      }
      static_cast<T*>(a.row_gradients)[n * a.rows + index] = x;
    }
  }
};

struct GraphKeyGradient {
  const Arguments& a;
  Sequence s;
  int key_head, key;
  T values[kValueLanes] = {};
  T sums[Score::kComponents][kFeatureLanes] = {};

  struct Sink {
    void score(int, T) {}
    void slope(int, T) {}
    void distance(void*, const Change&, const Place&, T) {}
  };

  // What an edge needs of its query.
  struct Seen {
    int row, ordinal;
    Whole index;
    RowData data;
    Features query;
    Columns d_output;
  };
  FOVEA_INLINE Seen load(int head, int n) const {
    Seen seen;
    seen.row = a.edge_rows[n];
    seen.ordinal = a.edges[n] - a.row_offsets[seen.row];
    GraphRow from{a, s, head, seen.row, 0, {}, {}};
    from.start(true);
    seen.index = from.index;
    seen.data = from.data;
    seen.data.delta = static_cast<const T*>(a.delta)[from.index];
    seen.query = from.query;
    seen.d_output.read(row_of<Value>(a.d_output, 0, head, seen.row), kValueWidth);
    return seen;
  }

  FOVEA_INLINE void add(int head, const Seen& seen, const Features& features,
                        const Columns& value) {
    const GraphRow from{a, s, head, seen.row, seen.index, seen.data, seen.query};
    const int ordinal = seen.ordinal;
    const Place p = from.at(key, ordinal);
    if (!from.allows(p)) return;
    const Scored scored = from.score(p, features);
    if (!scored.seen) return;
    const Columns& d_output = seen.d_output;
    const T weight = weight_of(a, head, scored.e, from.data.row, ordinal);
    const T factor = dropout_factor(a, from.data.random, key);
    const T da =
        factor == 0
            ? T(0)
            : factor * (from.product(d_output, value) + Modifiers::value_product(a.modifier, p));
    const T kept = factor == 0 ? T(0) : factor * weight;
    if (kept != 0) {
#pragma unroll
      for (int n = 0; n < kValueLanes; ++n) values[n] += kept * d_output.x[n][0];
    }
    if constexpr (!Score::kDirect) {
      T de = gradient_of(a, head, weight, da, scored.e, from.data);
      de = Modifiers::backward(a.modifier, p, scored.steps, de, 0, Sink{});
      const T g = Score::slope(a, scored.sum, from.data.inverse, de);
      if (g == 0) return;
#pragma unroll
      for (int n = 0; n < kFeatureLanes; ++n) {
        const T w = feature_weight(a, head, n);
        T terms[Score::kComponents] = {};
        Score::key_terms(g, from.query.x[n], features.x[n], terms);
#pragma unroll
        for (int part = 0; part < Score::kComponents; ++part) sums[part][n] += w * terms[part];
      }
    }
  }

  void run() {
    const int shared = a.heads / a.key_heads;
    GraphRow reader{a, s, key_head * shared, 0, 0, {}, {}};
    const Features features = reader.key_of(key);
    const Columns value = reader.value_of(key);
    for (int head = key_head * shared; head < (key_head + 1) * shared; ++head) {
      const int first = a.edge_offsets[key];
      each_ahead(
          a.edge_offsets[key + 1] - first, [&](int n) { return load(head, first + n); },
          [&](const Seen& seen) { add(head, seen, features, value); });
    }
    if (a.d_value.data) write_row(row_of<Value>(a.d_value, 0, key_head, key), kValueWidth, values);
    if constexpr (!Score::kDirect) {
      if (a.d_key.data) cuda::write_features(row_of<Operand>(a.d_key, 0, key_head, key), sums);
    }
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(256)
    fovea_gradient_query(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  const Sequence s = sequence_of(a, 0);
  each_group(static_cast<Whole>(a.queries) * a.heads, [&](Whole n) {
    GraphQueryGradient{
        {a, s, static_cast<int>(n % a.heads), static_cast<int>(n / a.heads), 0, {}, {}}}
        .run();
  });
}

extern "C" __global__ void __launch_bounds__(256)
    fovea_gradient_key(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  const Sequence s = sequence_of(a, 0);
  each_group(static_cast<Whole>(a.keys) * a.key_heads, [&](Whole n) {
    GraphKeyGradient{a, s, static_cast<int>(n % a.key_heads), static_cast<int>(n / a.key_heads)}
        .run();
  });
}
