// A block of 256 threads on tiles of queries x keys. One side owns what is computed: its rows lie on
// the 16 groups of 16 threads, kPer rows per group; the other side's lie on the threads of a group. So
// sums over the other side are sums within a group, in a fixed order.
#pragma once

namespace fovea::cuda {

constexpr int kThreads = 256, kSide = 16, kPer = kTile / kSide;
constexpr int kRowPitch = kTile + 4;
constexpr int kStep = 16;  // rows staged at a time for a sum over rows
constexpr int kFeatures = kWidth / Score::kComponents;
constexpr int kFeatureChunk = kChunk / Score::kComponents;
constexpr int kMostDepth = 16;  // features staged at a time

constexpr int at_least_one(int n) { return n > 0 ? n : 1; }
constexpr int smaller(int x, int y) { return x < y ? x : y; }
// Columns of a thread: those of its block, over the threads of a group.
constexpr int columns_of(int width, int chunk) {
  return at_least_one((smaller(width, chunk) + kSide - 1) / kSide);
}

constexpr int larger_of(int x, int y) { return x > y ? x : y; }
struct alignas(16) Tiles {
  // Two sides, two components; or rows of a chunk of columns (kChunk, the program's).
  T stage[larger_of(2 * 2 * kMostDepth * kRowPitch, kStep* kChunk)];
  T weights[2 * kMostDepth];     // beside it (factored.h)
  T products[kTile][kRowPitch];  // [other][owner]: weights, or gradients, of the pairs
  RowData rows[kTile];           // of the queries
};

inline int group() { return threadIdx.x / kSide; }
inline int member() { return threadIdx.x % kSide; }

// One side of a tile: rows of an operand.
template <class Stored>
struct Side {
  const Stored* data;  // the first row
  Whole row;
  int count;  // of rows that are there
};

template <class Stored>
Side<Stored> side_of(const Rows& rows, int batch, int head, Whole first, int count) {
  return {row_of<Stored>(rows, batch, head, first), rows.row, least(count, kTile)};
}

// Columns column .. of a side's rows to [component][feature][row], zero where there are none.
template <int kParts, int kDepth, class Stored>
void stage_features(const Side<Stored>& side, int feature, int features, int part_stride,
                    T* stage) {
  for (int n = threadIdx.x; n < kParts * kDepth * kTile; n += kThreads) {
    const int f = n % kDepth, r = n / kDepth % kTile, part = n / (kDepth * kTile);
    const bool there = r < side.count && feature + f < features;
    stage[(part * kDepth + f) * kRowPitch + r] =
        there ? static_cast<T>(widen(side.data[r * side.row + part * part_stride + feature + f]))
              : T(0);
  }
}

// sums[r][n] over features of step(owner's row r, other's row n).
template <int kParts, int kCount, class StoredOwner, class StoredOther, class Step>
void sum_features(Tiles& tiles, const Side<StoredOwner>& owner, const Side<StoredOther>& other,
                  const Broadcast* weight, int head, T (&sums)[kPer][kPer], Step step) {
  constexpr int kDepth = at_least_one(smaller(kCount, kMostDepth));
  T* mine = tiles.stage;
  T* theirs = tiles.stage + kParts * kDepth * kRowPitch;
  for (int r = 0; r < kPer; ++r)
    for (int n = 0; n < kPer; ++n) sums[r][n] = 0;
  for (int first = 0; first < kCount; first += kDepth) {
    __syncthreads();
    stage_features<kParts, kDepth>(owner, first, kCount, kCount, mine);
    stage_features<kParts, kDepth>(other, first, kCount, kCount, theirs);
    if (weight && threadIdx.x < kDepth)
      tiles.weights[threadIdx.x] = first + static_cast<int>(threadIdx.x) < kCount
                                       ? element<T>(*weight, 0, head, 0, first + threadIdx.x)
                                       : T(0);
    __syncthreads();
    const int depth = least(kDepth, kCount - first);
#pragma unroll 4
    for (int f = 0; f < depth; ++f) {
      T a[kPer][kParts], b[kPer][kParts];
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int r = 0; r < kPer; ++r) {
          a[r][part] = mine[(part * kDepth + f) * kRowPitch + group() * kPer + r];
          b[r][part] = theirs[(part * kDepth + f) * kRowPitch + member() * kPer + r];
        }
      }
      const T w = weight ? tiles.weights[f] : T(1);
#pragma unroll
      for (int r = 0; r < kPer; ++r) {
#pragma unroll
        for (int n = 0; n < kPer; ++n) sums[r][n] = step(sums[r][n], a[r], b[n], w);
      }
    }
  }
}

template <int kCount, class StoredOwner, class StoredOther>
void sum_factored(Tiles& tiles, const Side<StoredOwner>& owner, const Side<StoredOther>& other,
                  const Broadcast& weight, int head, T (&sums)[kPer][kPer]);

// Rows first .. of a side, columns column .., to [row][part][column]. Whether all are finite, known
// to all threads; also a barrier.
template <int kParts, int kColumns, class Stored>
bool stage_rows(const Side<Stored>& side, int first, int column, int columns, int part_stride,
                T* stage) {
  bool bad = false;
  for (int n = threadIdx.x; n < kStep * kParts * kColumns; n += kThreads) {
    const int c = n % kColumns, part = n / kColumns % kParts, r = n / (kColumns * kParts);
    const bool there = first + r < side.count && column + c < columns;
    const T x = there ? static_cast<T>(widen(
                            side.data[(first + r) * side.row + part * part_stride + column + c]))
                      : T(0);
    bad |= !is_finite(x);
    stage[n] = x;
  }
  return __syncthreads_or(bad) == 0;
}

// sums[r][c] += products[o][r] x[o][c] over the other side's rows o. A product of 0 takes nothing
// from a row that is not finite: the pair is not there.
template <int kColumns, class Stored>
void sum_rows(Tiles& tiles, const Side<Stored>& other, int column, int columns,
              T (&sums)[kPer][kColumns]) {
  constexpr int kStaged = kColumns * kSide;
  for (int first = 0; first < other.count; first += kStep) {
    const bool finite = stage_rows<1, kStaged>(other, first, column, columns, 0, tiles.stage);
    const int rows = least(kStep, other.count - first);
    for (int o = 0; o < rows; ++o) {
      T p[kPer];
#pragma unroll
      for (int r = 0; r < kPer; ++r) p[r] = tiles.products[first + o][group() * kPer + r];
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const T x = tiles.stage[o * kStaged + member() + c * kSide];
#pragma unroll
        for (int r = 0; r < kPer; ++r) {
          if (finite || p[r] != 0) sums[r][c] += p[r] * x;
        }
      }
    }
    __syncthreads();
  }
}

// A query tile against a key tile: which pairs are seen.
struct Rectangle {
  Sequence s;
  int head, key_head;
  int row, rows;  // of the queries
  int key, keys;
  bool whole;  // every pair is allowed
};

// False where no pair is allowed.
inline bool rectangle_of(const Arguments& a, const Sequence& s, int head, int row, int key,
                         Rectangle& to) {
  to = {s,
        head,
        head / (a.heads / a.key_heads),
        row,
        least(kTile, s.queries - row),
        key,
        least(kTile, s.keys - key),
        false};
  if (to.rows <= 0 || to.keys <= 0) return false;
  const Cover cover =
      Structure::cover(a.structure, {s.batch, head, row, to.rows, s.position + row, key, to.keys});
  to.whole = cover == Cover::kAll && to.rows == kTile && to.keys == kTile;
  return cover != Cover::kNone;
}

template <bool kOwnerIsQuery>
struct Pairs {
  static int row(int r, int n) { return kOwnerIsQuery ? group() * kPer + r : member() * kPer + n; }
  static int key(int r, int n) { return kOwnerIsQuery ? member() * kPer + n : group() * kPer + r; }

  static Place place(const Arguments& a, const Rectangle& at, int r, int n) {
    const int row = at.row + Pairs::row(r, n), key = at.key + Pairs::key(r, n);
    return {
        at.s.batch, at.head, row, at.s.position + row, key, key, row_index(a, at.s, at.head, row)};
  }

  // The sums behind the scores of a rectangle.
  static void sum_scores(const Arguments& a, Tiles& tiles, const Rectangle& at,
                         T (&sums)[kPer][kPer]) {
    if constexpr (Score::kDirect) {
      for (int r = 0; r < kPer; ++r) {
        for (int n = 0; n < kPer; ++n) {
          const int i = row(r, n), j = key(r, n);
          sums[r][n] = i < at.rows && j < at.keys
                           ? Score::value(row_of<Operand>(a.query, at.s.batch, at.head,
                                                          at.s.first_query + at.row + i),
                                          at.key + j)
                           : T(0);
        }
      }
    } else {
      constexpr int kParts = Score::kComponents;
      const auto queries =
          side_of<Operand>(a.query, at.s.batch, at.head, at.s.first_query + at.row, at.rows);
      const auto keys =
          side_of<Operand>(a.key, at.s.batch, at.key_head, at.s.first_key + at.key, at.keys);
      const Broadcast* weight = Score::kWeighted ? &a.weight : nullptr;
      if constexpr (Score::kFactored && kOwnerIsQuery) {
        sum_factored<kFeatures>(tiles, queries, keys, a.weight, at.head, sums);
      } else if constexpr (Score::kFactored) {
        sum_factored<kFeatures>(tiles, keys, queries, a.weight, at.head, sums);
      } else if constexpr (kOwnerIsQuery) {
        sum_features<kParts, kFeatures>(
            tiles, queries, keys, weight, at.head, sums,
            [](T sum, const T* q, const T* k, T w) { return Score::step(sum, q, k, w); });
      } else {
        sum_features<kParts, kFeatures>(
            tiles, keys, queries, weight, at.head, sums,
            [](T sum, const T* k, const T* q, T w) { return Score::step(sum, q, k, w); });
      }
    }
  }

  // visit(r, n, place, scored, data of the row) for the pairs that are seen.
  template <class Visit>
  static void each_seen(const Arguments& a, Tiles& tiles, const Rectangle& at,
                        const T (&sums)[kPer][kPer], Visit visit) {
#pragma unroll
    for (int r = 0; r < kPer; ++r) {
#pragma unroll
      for (int n = 0; n < kPer; ++n) {
        if (!at.whole && (row(r, n) >= at.rows || key(r, n) >= at.keys)) continue;
        const Place p = place(a, at, r, n);
        if (!at.whole && !Structure::allows(a.structure, p)) continue;
        const RowData& data = tiles.rows[row(r, n)];
        const Scored scored = score_of(a, p, sums[r][n], data.inverse);
        if (scored.seen) visit(r, n, p, scored, data);
      }
    }
  }
};

// Weights, or gradients, of a row by distance (Relative). A distance within the clip is one pair's
// alone; the two ends are sums of the row, kept until `finish`.
struct Distances {
  T ends[kPer][2] = {};
  void add(void* sums, const Change& change, const Place& p, int r, T x) {
    if (!sums) return;
    const int clip = static_cast<int>(change.whole), distance = p.j - p.i;
    if (distance > -clip && distance < clip)
      static_cast<T*>(sums)[p.row_index * (2 * clip + 1) + distance + clip] = x;
    else
      ends[r][distance > 0] += x;
  }
  void finish(void* sums, const Change& change, int r, Whole row_index, bool there) {
    const T low = lanes_sum<kSide>(ends[r][0]), high = lanes_sum<kSide>(ends[r][1]);
    if (!sums || !there || member() != 0) return;
    const Whole clip = change.whole;
    T* row = static_cast<T*>(sums) + row_index * (2 * clip + 1);
    row[0] = clip == 0 ? low + high : low;
    if (clip > 0) row[2 * clip] = high;
  }
};

// The change that adds to values, of those there are.
inline const Change* relative_of(const Arguments& a) {
  if constexpr (!Modifiers::kAddsValues) return nullptr;
  return &a.modifier[0];  // relative positions come first
}

}  // namespace fovea::cuda
