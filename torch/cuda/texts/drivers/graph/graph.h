// Attention on a graph: a group of kGroup lanes owns a row of one head, forward and for the query's
// gradient, or a key of one head for its own. Lanes lie on features and columns; edges come one after
// another, in the order of the graph, so that sums are in a fixed order.
#pragma once

namespace fovea::cuda {

constexpr int kThreads = 256;
constexpr int kFeatures = kWidth / Score::kComponents;
constexpr int kPiece = 4;  // numbers of a lane side by side, loaded at once
constexpr int lanes_of(int width) {
  const int pieces = (width + kPiece * kGroup - 1) / (kPiece * kGroup);
  return kPiece * (pieces > 0 ? pieces : 1);
}
constexpr int kFeatureLanes = kFeatures <= 1 ? 1 : lanes_of(kFeatures),
              kValueLanes = lanes_of(kValueWidth);
constexpr bool kOnePass = !Normaliser::kThreshold && !Modifiers::kAddsValues;
// Edges whose rows are loaded at once.
constexpr int kLoaded = kFeatureLanes * Score::kComponents + kValueLanes;
constexpr int kAhead = kLoaded <= 8 ? 4 : kLoaded <= 24 ? 2 : 1;

inline int lane() { return threadIdx.x % kGroup; }
inline unsigned group_mask() {
  constexpr unsigned kAll = kGroup == kWarp ? ~0u : (1u << kGroup % kWarp) - 1;
  return kAll << threadIdx.x % kWarp / kGroup * kGroup;
}
template <class Number>
Number group_sum(Number x) {
  return lanes_sum<kGroup>(x, group_mask());
}
// The column of a lane's number n. One that all lanes hold is column 0.
inline int column_of(int n) { return (n / kPiece * kGroup + lane()) * kPiece + n % kPiece; }

template <class Stored>
struct alignas(sizeof(Stored) * kPiece < 16 ? sizeof(Stored) * kPiece : 16) Piece {
  Stored x[kPiece];
};
template <class Stored>
bool is_aligned(const Stored* row) {
  return reinterpret_cast<unsigned long long>(row) % alignof(Piece<Stored>) == 0;
}

// A row's numbers over the lanes.
template <int kLanes, int kParts>
struct Spread {
  T x[kLanes][kParts];
  template <class Stored>
  FOVEA_INLINE void read(const Stored* row, int width) {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      if constexpr (kLanes < kPiece) {
        x[0][part] = static_cast<T>(widen(row[part * width]));
      } else {
#pragma unroll
        for (int n = 0; n < kLanes; n += kPiece) {
          const Stored* from = row + part * width + column_of(n);
          if (column_of(n) + kPiece <= width && is_aligned(from)) {
            const auto piece = *reinterpret_cast<const Piece<Stored>*>(from);
#pragma unroll
            for (int c = 0; c < kPiece; ++c) x[n + c][part] = static_cast<T>(widen(piece.x[c]));
          } else {
#pragma unroll
            for (int c = 0; c < kPiece; ++c)
              x[n + c][part] = column_of(n) + c < width ? static_cast<T>(widen(from[c])) : T(0);
          }
        }
      }
    }
  }
};
using Features = Spread<kFeatureLanes, Score::kComponents>;
using Columns = Spread<kValueLanes, 1>;

// Numbers over the lanes to a row.
template <int kLanes, class Stored>
FOVEA_INLINE void write_row(Stored* row, int width, const T (&x)[kLanes]) {
#pragma unroll
  for (int n = 0; n < kLanes; n += kPiece) {
    Stored* to = row + column_of(n);
    Piece<Stored> piece;
#pragma unroll
    for (int c = 0; c < kPiece; ++c) narrow(x[n + c], piece.x[c]);
    if (column_of(n) + kPiece <= width && is_aligned(to)) {
      *reinterpret_cast<Piece<Stored>*>(to) = piece;
    } else {
#pragma unroll
      for (int c = 0; c < kPiece; ++c)
        if (column_of(n) + c < width) to[c] = piece.x[c];
    }
  }
}

// Sums of features, [component][lane], to a row.
template <class Stored>
FOVEA_INLINE void write_features(Stored* row, const T (&sums)[Score::kComponents][kFeatureLanes]) {
#pragma unroll
  for (int part = 0; part < Score::kComponents; ++part) {
    if constexpr (kFeatureLanes >= kPiece)
      write_row(row + part * kFeatures, kFeatures, sums[part]);
    else if (lane() == 0)  // all lanes hold the one
      narrow(sums[part][0], row[part * kFeatures]);
  }
}
// The weight of a lane's feature n, where scores have weights.
inline T feature_weight(const Arguments& a, int head, int n) {
  if constexpr (!Score::kWeighted) return 1;
  const int f = kFeatures == 1 ? 0 : column_of(n);
  return f < kFeatures ? element<T>(a.weight, 0, head, 0, f) : T(0);
}

// use(load(n)) for n in order, a few loads ahead of the first use.
template <class Load, class Use>
FOVEA_INLINE void each_ahead(int count, Load load, Use use) {
  for (int first = 0; first < count; first += kAhead) {
    decltype(load(0)) loaded[kAhead];
#pragma unroll
    for (int n = 0; n < kAhead; ++n) loaded[n] = load(least(first + n, count - 1));
#pragma unroll
    for (int n = 0; n < kAhead; ++n)
      if (first + n < count) use(loaded[n]);
  }
}

struct Edge {
  int j, ordinal;
  Features key;
  Columns value;
};

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
  FOVEA_INLINE Scored score(const Place& p, const Features& key) const {
    T sum = 0;
    if constexpr (Score::kDirect) {
      sum = Score::value(row_of<Operand>(a.query, 0, head, row), p.j);
    } else if constexpr (kFeatures == 1) {
      sum = Score::step(sum, query.x[0], key.x[0], feature_weight(a, head, 0));
    } else {
#pragma unroll
      for (int n = 0; n < kFeatureLanes; ++n) {
        if (column_of(n) >= kFeatures) continue;
        sum = Score::step(sum, query.x[n], key.x[n], feature_weight(a, head, n));
      }
      sum = group_sum(sum);
    }
    return score_of(a, p, sum, data.inverse);
  }
  FOVEA_INLINE Features key_of(int j) const {
    Features key;
    if constexpr (!Score::kDirect) key.read(row_of<Operand>(a.key, 0, key_head(), j), kFeatures);
    return key;
  }
  FOVEA_INLINE Columns value_of(int j) const {
    Columns value;
    value.read(row_of<Value>(a.value, 0, key_head(), j), kValueWidth);
    return value;
  }
  // visit(place, scored, edge) for the edges that are seen; values are read where kValues.
  template <bool kValues, class Visit>
  FOVEA_INLINE void each_seen(Visit visit) const {
    const int* columns = a.columns + first_edge();
    each_ahead(
        edges(),
        [&](int n) {
          Edge edge;
          edge.j = columns[n];
          edge.ordinal = n;
          edge.key = key_of(edge.j);
          if constexpr (kValues) edge.value = value_of(edge.j);
          return edge;
        },
        [&](const Edge& edge) {
          const Place p = at(edge.j, edge.ordinal);
          if (!allows(p)) return;
          const Scored scored = score(p, edge.key);
          if (scored.seen) visit(p, scored, edge);
        });
  }
  // dO.v of an edge, the same in every lane.
  T product(const Columns& d_output, const Columns& value) const {
    T sum = 0;
#pragma unroll
    for (int n = 0; n < kValueLanes; ++n) sum += d_output.x[n][0] * value.x[n][0];
    return group_sum(sum);
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
void each_group(Whole work, Body body) {
  const int groups = kThreads / kGroup;
  for (Whole n = static_cast<Whole>(blockIdx.x) * groups + threadIdx.x / kGroup; n < work;
       n += static_cast<Whole>(gridDim.x) * groups)
    body(n);
}

}  // namespace fovea::cuda
