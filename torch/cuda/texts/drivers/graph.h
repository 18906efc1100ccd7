// Attention on a graph: a warp owns a row of one head, forward and for the query's gradient, or a
// key of one head for its own. Lanes lie on features and columns; edges come one after another, in
// the order of the graph, so that sums are in a fixed order.
#pragma once

namespace fovea::cuda {

constexpr int kThreads = 256;
constexpr int kFeatures = kWidth / Score::kComponents;
constexpr int lanes_of(int width) {
  return (width + kWarp - 1) / kWarp > 0 ? (width + kWarp - 1) / kWarp : 1;
}
constexpr int kFeatureLanes = lanes_of(kFeatures), kValueLanes = lanes_of(kValueWidth);
constexpr bool kOnePass = !Normaliser::kThreshold && !Modifiers::kAddsValues;

inline int lane() { return threadIdx.x % kWarp; }

// A row's numbers over the lanes.
template <int kLanes, int kParts>
struct Spread {
  T x[kLanes][kParts];
  template <class Stored>
  void read(const Stored* row, int width) {
#pragma unroll
    for (int n = 0; n < kLanes; ++n) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        const int at = n * kWarp + lane();
        x[n][part] = at < width ? static_cast<T>(widen(row[part * width + at])) : T(0);
      }
    }
  }
};
using Features = Spread<kFeatureLanes, Score::kComponents>;
using Columns = Spread<kValueLanes, 1>;

// One row of the graph, in one head.
struct GraphRow {
  const Arguments& a;
  Sequence s;
  int head, row;
  Whole index;
  RowData data;
  Features query;

  int key_head() const { return head / (a.heads / a.key_heads); }
  int first_edge() const { return a.row_offsets[row]; }
  int edges() const { return a.row_offsets[row + 1] - a.row_offsets[row]; }
  Place place(int ordinal) const { return at(a.columns[first_edge() + ordinal], ordinal); }
  Place at(int key, int ordinal) const {
    return {0, head, row, s.position + row, key, ordinal, index};
  }

  void start(bool with_statistics) {
    index = row_index(a, s, head, row);
    data = row_data(a, s, head, row);
    if (with_statistics) read_statistics(a, index, data);
    if constexpr (!Score::kDirect) query.read(row_of<Operand>(a.query, 0, head, row), kFeatures);
  }

  bool allows(const Place& p) const { return p.j < s.keys && Structure::allows(a.structure, p); }
  // The same in every lane.
  Scored score(const Place& p, const Features& key) const {
    T sum = 0;
    if constexpr (Score::kDirect) {
      sum = Score::value(row_of<Operand>(a.query, 0, head, row), p.j);
    } else {
#pragma unroll
      for (int n = 0; n < kFeatureLanes; ++n) {
        const int f = n * kWarp + lane();
        if (kFeatures > 1 && f >= kFeatures) continue;
        const int there = kFeatures > 1 ? f : 0;
        const T w = Score::kWeighted ? element<T>(a.weight, 0, head, 0, there) : T(1);
        sum = Score::step(sum, query.x[n], key.x[n], w);
      }
      if constexpr (kFeatures == 1)
        sum = __shfl_sync(~0u, sum, 0);
      else
        sum = lanes_sum(sum);
    }
    return score_of(a, p, sum, data.inverse);
  }
  Features key_of(int j) const {
    Features key;
    if constexpr (!Score::kDirect) key.read(row_of<Operand>(a.key, 0, key_head(), j), kFeatures);
    return key;
  }
  Columns value_of(int j) const {
    Columns value;
    value.read(row_of<Value>(a.value, 0, key_head(), j), kValueWidth);
    return value;
  }
  // visit(place, scored, key) for the edges that are seen.
  template <class Visit>
  void each_seen(Visit visit) const {
    const int count = edges();
    for (int n = 0; n < count; ++n) {
      const Place p = place(n);
      if (!allows(p)) continue;
      const Features key = key_of(p.j);
      const Scored scored = score(p, key);
      if (scored.seen) visit(p, scored, key);
    }
  }
  // dO.v of an edge, the same in every lane.
  T product(const Columns& d_output, const Columns& value) const {
    T sum = 0;
#pragma unroll
    for (int n = 0; n < kValueLanes; ++n) sum += d_output.x[n][0] * value.x[n][0];
    return lanes_sum(sum);
  }
};

// By distance: edges come one at a time, so a sum is one lane's.
struct DistanceSums {
  static void add(void* sums, const Change& change, const Place& p, T x) {
    if (!sums || lane() != 0) return;
    const int clip = static_cast<int>(change.whole);
    static_cast<T*>(
        sums)[p.row_index * (2 * clip + 1) + least(most(p.j - p.i, -clip), clip) + clip] += x;
  }
  void distance(void* sums, const Change& change, const Place& p, T x) { add(sums, change, p, x); }
};

template <class Body>
void each_warp(Whole work, Body body) {
  const int warps = kThreads / kWarp;
  for (Whole n = static_cast<Whole>(blockIdx.x) * warps + threadIdx.x / kWarp; n < work;
       n += static_cast<Whole>(gridDim.x) * warps)
    body(n);
}

}  // namespace fovea::cuda
