// Backward on a graph: rows own the queries' gradients, keys their own through the transposed graph.
#pragma once

namespace fovea::cuda {

struct GraphQueryGradient : GraphRow {
  T sums[kFeatureLanes][Score::kComponents] = {};
  T weights[kFeatureLanes] = {};
  T slots[kSlots] = {};

  T da_of(const Place& p, const Columns& d_output, T factor) const {
    if (factor == 0) return 0;
    return factor * (product(d_output, value_of(p.j)) + Modifiers::value_product(a.modifier, p));
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
      each_seen([&](const Place& p, const Scored& scored, const Features&) {
        const T weight = weight_of(a, head, scored.e, data.row, p.ordinal);
        const T w = Normaliser::fold_weight(a, head, weight);
        if (w == 0) return;
        weighted += w * da_of(p, d_output, dropout_factor(a, data.random, p.j));
        w_sum += w;
        if (weight > 0) {
          const T log = logarithm(weight);
          entropy -= weight * log;
          squares += weight * log * log;
        }
      });
      data.delta = w_sum == 0 ? T(0) : weighted / w_sum;
    }
    each_seen([&](const Place& p, const Scored& scored, const Features& key) {
      const T weight = weight_of(a, head, scored.e, data.row, p.ordinal);
      const T factor = dropout_factor(a, data.random, p.j), da = da_of(p, d_output, factor);
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
          Score::query_terms(g, query.x[n], key.x[n], sums[n]);
          if constexpr (Score::kWeighted) weights[n] += Score::weight_term(g, query.x[n], key.x[n]);
        }
      }
    });
    write();
  }

  void write() {
    if constexpr (!Score::kDirect) {
      Operand* out = row_of<Operand>(a.d_query, 0, head, row);
      for (int n = 0; n < kFeatureLanes; ++n) {
        const int f = n * kWarp + lane();
        if (f >= kFeatures) continue;
        const T w = Score::kWeighted ? element<T>(a.weight, 0, head, 0, f) : T(1);
        for (int part = 0; part < Score::kComponents; ++part)
          narrow(w * sums[n][part], out[part * kFeatures + f]);
        if constexpr (Score::kWeighted)
          static_cast<T*>(
              a.d_weight)[(static_cast<Whole>(head) * a.queries + row) * kFeatures + f] =
              weights[n];
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
  T sums[kFeatureLanes][Score::kComponents] = {};

  struct Sink {
    void score(int, T) {}
    void slope(int, T) {}
    void distance(void*, const Change&, const Place&, T) {}
  };

  void add(int head, int row, int ordinal, const Features& features, const Columns& value) {
    GraphRow from{a, s, head, row, 0, {}, {}};
    const Place looked{0, head, row, s.position + row, key, ordinal, 0};
    if (!from.allows(looked)) return;
    from.start(true);
    const Place p = from.at(key, ordinal);
    from.data.delta = static_cast<const T*>(a.delta)[from.index];
    const Scored scored = from.score(p, features);
    if (!scored.seen) return;
    Columns d_output;
    d_output.read(row_of<Value>(a.d_output, 0, head, row), kValueWidth);
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
        const int f = n * kWarp + lane();
        const T w = Score::kWeighted && f < kFeatures ? element<T>(a.weight, 0, head, 0, f) : T(1);
        T terms[Score::kComponents] = {};
        Score::key_terms(g, from.query.x[n], features.x[n], terms);
        for (int part = 0; part < Score::kComponents; ++part) sums[n][part] += w * terms[part];
      }
    }
  }

  void run() {
    const int shared = a.heads / a.key_heads;
    GraphRow reader{a, s, key_head * shared, 0, 0, {}, {}};
    const Features features = reader.key_of(key);
    const Columns value = reader.value_of(key);
    for (int head = key_head * shared; head < (key_head + 1) * shared; ++head) {
      for (int n = a.edge_offsets[key]; n < a.edge_offsets[key + 1]; ++n) {
        const int row = a.edge_rows[n];
        add(head, row, a.edges[n] - a.row_offsets[row], features, value);
      }
    }
    if (a.d_value.data) {
      Value* out = row_of<Value>(a.d_value, 0, key_head, key);
      for (int n = 0; n < kValueLanes; ++n) {
        const int c = n * kWarp + lane();
        if (c < kValueWidth) narrow(values[n], out[c]);
      }
    }
    if constexpr (!Score::kDirect) {
      if (!a.d_key.data) return;
      Operand* out = row_of<Operand>(a.d_key, 0, key_head, key);
      for (int n = 0; n < kFeatureLanes; ++n) {
        const int f = n * kWarp + lane();
        if (f >= kFeatures) continue;
        for (int part = 0; part < Score::kComponents; ++part)
          narrow(sums[n][part], out[part * kFeatures + f]);
      }
    }
  }
};

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(256)
    fovea_gradient_query(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  const Sequence s = sequence_of(a, 0);
  each_warp(static_cast<Whole>(a.queries) * a.heads, [&](Whole n) {
    GraphQueryGradient{
        {a, s, static_cast<int>(n % a.heads), static_cast<int>(n / a.heads), 0, {}, {}}}
        .run();
  });
}

extern "C" __global__ void __launch_bounds__(256)
    fovea_gradient_key(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  const Sequence s = sequence_of(a, 0);
  each_warp(static_cast<Whole>(a.keys) * a.key_heads, [&](Whole n) {
    GraphKeyGradient{a, s, static_cast<int>(n % a.key_heads), static_cast<int>(n / a.key_heads)}
        .run();
  });
}
