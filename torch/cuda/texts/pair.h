// One pair of query and key: its score through the modifiers, its dropout.
#pragma once

namespace fovea::cuda {

// What a row's pairs share.
struct RowData {
  Row row;
  T inverse;  // 1 / bandwidth
  T delta, d_lse;
  unsigned long long random;
};

struct Scored {
  bool seen;
  T e;
  T sum;                           // before `finish`
  T steps[Modifiers::kCount + 1];  // the score before each modifier
};

inline bool is_masked(T e) { return !kValueFace && e == -infinity_of(T()); }

// The score of a pair that the structure allows.
inline Scored score_of(const Arguments& a, const Place& place, T sum, T inverse) {
  Scored scored;
  scored.sum = sum;
  T e = sum;
  if constexpr (!Score::kDirect) e = Score::finish(a, sum, inverse);
  scored.seen = !is_masked(e);
  scored.e = Modifiers::value(a.modifier, place, e, scored.steps);
  scored.seen = scored.seen && !is_masked(scored.e);
  return scored;
}

inline T dropout_factor(const Arguments& a, unsigned long long random, int j) {
  if constexpr (!kDropout) return 1;
  return engine::random_pair(random, static_cast<unsigned>(j)) < a.dropout_threshold
             ? T(0)
             : static_cast<T>(a.dropout_scale);
}

inline T weight_of(const Arguments& a, int head, T e, const Row& row, int ordinal) {
  return row.state == kSpoiled ? nan_of(T()) : Normaliser::weight(a, head, e, row, ordinal);
}
inline T gradient_of(const Arguments& a, int head, T weight, T da, T e, const RowData& data) {
  if (data.row.state == kSpoiled) return nan_of(T());
  return Normaliser::gradient(a, head, weight, da, e, data.row, data.delta, data.d_lse);
}

inline Whole row_index(const Arguments& a, const Sequence& s, int head, int row) {
  if (kPacked) return static_cast<Whole>(s.first_query + row) * a.heads + head;
  return (static_cast<Whole>(s.batch) * a.heads + head) * a.queries + row;
}

template <class Number>
Number* row_of(const Rows& rows, int batch, int head, Whole row) {
  return static_cast<Number*>(rows.data) + (kPacked ? 0 : batch * rows.batch) + head * rows.head +
         row * rows.row;
}

// The same of keys or values, which may lie in pages. Tables hold anything past a sequence's keys.
template <class Number>
Number* key_row_of(const Arguments& a, const Rows& rows, int batch, int head, Whole row) {
  if constexpr (!kPaged) return row_of<Number>(rows, batch, head, row);
  const int key = static_cast<int>(row), column = key / a.page_rows;
  const int page = a.table[static_cast<Whole>(batch) * a.table_width + column];
  // Within the pool, whatever a table holds that was filled after it was checked.
  return row_of<Number>(rows, most(0, least(page, a.pages - 1)), head, key - column * a.page_rows);
}

// Slots of row_gradients: the bandwidth, the normaliser's number, then one for each modifier.
constexpr int kBandwidthSlot = 0, kParameterSlot = 1, kFirstChange = 2,
              kSlots = kFirstChange + Modifiers::kCount;

inline RowData row_data(const Arguments& a, const Sequence& s, int head, int row) {
  RowData data{{0, 0, 0, kEmpty}, 1, 0, 0, 0};
  if constexpr (Score::kBandwidth) data.inverse = 1 / element<T>(a.weight, s.batch, head, row, 0);
  if constexpr (kDropout || kSampled)
    data.random = engine::random_row(
        a.seed, static_cast<unsigned long long>(s.batch), static_cast<unsigned long long>(head),
        static_cast<unsigned long long>(static_cast<Whole>(s.position + row)));
  return data;
}
inline void read_statistics(const Arguments& a, Whole index, RowData& data) {
  data.row = static_cast<const Row*>(a.statistics)[index];
  if (a.d_lse) data.d_lse = static_cast<const T*>(a.d_lse)[index];
}

// body(sequence, head, first row) for the tiles of `own` queries that are the block's. Long rows come
// first where later queries see more keys. Batches that read one array come close together.
template <class Body>
void each_query_tile(const Arguments& a, int own, Body body) {
  const int tiles = (a.queries + own - 1) / own;
  const Whole work = static_cast<Whole>(a.batches) * a.heads * tiles;
  for (Whole n = blockIdx.x; n < work; n += gridDim.x) {
    const int row = (tiles - 1 - static_cast<int>(n % tiles)) * own;
    const int of = static_cast<int>(n / tiles);
    const int head = Modifiers::kReads ? of / a.batches : of % a.heads;
    const Sequence s = sequence_of(a, Modifiers::kReads ? of % a.batches : of / a.heads);
    if (row < s.queries) body(s, head, row);
  }
}

// The keys that a tile of queries may see, and the rows that may see a tile of keys.
inline void key_range(const Arguments& a, const Sequence& s, int head, int row, int rows,
                      int& first, int& end) {
  first = 0;
  end = s.keys;
  const int there = least(rows, s.queries - row);
  Structure::narrow_keys(a.structure, {s.batch, head, row, there, s.position + row, 0, s.keys},
                         first, end);
}
inline void row_range(const Arguments& a, const Sequence& s, int head, int key, int keys,
                      int& first, int& end) {
  first = s.position;
  end = s.position + s.queries;
  Structure::narrow_positions(
      a.structure, {s.batch, head, 0, s.queries, s.position, key, least(keys, s.keys - key)}, first,
      end);
  first -= s.position;
  end -= s.position;
}

// The end of a row's forward pass: statistics, log-sum-exp, the count of empty rows.
inline void keep_row(const Arguments& a, Whole index, const Row& row, T lse) {
  static_cast<Row*>(a.statistics)[index] = row;
  if (row.state == kEmpty) atomicAdd(a.empty_rows, 1ull);
  if (!a.lse) return;
  T* out = static_cast<T*>(a.lse) + index;
  *out = row.state == kSpoiled ? nan_of(T()) : row.state == kEmpty ? -infinity_of(T()) : lse;
}

}  // namespace fovea::cuda
