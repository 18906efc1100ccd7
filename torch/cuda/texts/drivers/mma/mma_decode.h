// Forward on tensor cores for few queries: a block has the queries of all heads that share a key, up
// to 16 rows, and a part of the keys, so that many blocks read the keys of one head once. Each warp
// keeps what it has seen of a row; fovea_merge brings the parts together.
#pragma once

namespace fovea::cuda {

constexpr int kRows = 16, kOther = 64, kMine = kOther / kMmaWarps;  // keys of a tile, of a warp

struct MmaDecodeShared {
  Stored queries[kRows * kPitch];
  Stored keys[2][kOther * kPitch], values[2][kOther * kValuePitch];
  RowData rows[kRows];
  int bad[kOther];
};
static_assert(sizeof(MmaDecodeShared) <= kSharedBytes);

// A part of a row: its largest score, the sum of its powers, what it saw, and its sums of values.
struct Part16 {
  float shift, total, seen, bad;
  float sums[kValueWidth];
};
inline Part16& part_of(const Arguments& a, Whole row, int part, int parts) {
  return static_cast<Part16*>(a.scratch)[row * parts + part];
}

// Keys or values to shared memory, zeros beyond the count; in pages a row is found by its page.
template <int kRows, int kColumns>
void copy_keys(Stored* to, const Arguments& a, const Rows& rows, int batch, int head, int first,
               int count) {
  if constexpr (!kPaged) {
    copy_rows<kRows, kColumns>(to, rows, batch, head, first, count);
    return;
  }
  constexpr int kPieces = kColumns / 8;
  for (int n = threadIdx.x; n < kRows * kPieces; n += kThreads) {
    const int r = n / kPieces, c = n % kPieces * 8;
    const bool there = r < count;
    const Stored* from = key_row_of<Stored>(a, rows, batch, head, there ? first + r : first);
    copy_16(to + place_in<kRows, kColumns>(r, c), from + c, there);
  }
}

struct MmaDecode {
  const Arguments& a;
  MmaDecodeShared& shared;
  Sequence s;
  int key_head, rows;  // rows: queries of all heads that share the key
  float sums[1][kValueWidth / 8][4] = {};
  float shift[2], total[2] = {};
  bool bad[2] = {}, seen[2] = {};

  int head_of(int r) const { return key_head * (a.heads / a.key_heads) + r / s.queries; }
  int row_of_query(int r) const { return r % s.queries; }

  void copy(int key, int end, int buffer) {
    copy_keys<kOther, kWidth>(shared.keys[buffer], a, a.key, s.batch, key_head, key, end - key);
    copy_keys<kOther, kValueWidth>(shared.values[buffer], a, a.value, s.batch, key_head, key,
                                   end - key);
  }
  // Which of a tile's pairs are allowed, over all heads.
  Cover cover(int key, int end) const {
    bool all = end - key >= kOther, none = true;
    for (int head = head_of(0); head <= head_of(rows - 1); ++head) {
      const Cover seen = Structure::cover(
          a.structure, {s.batch, head, 0, s.queries, s.position, key, least(kOther, end - key)});
      all = all && seen == Cover::kAll;
      none = none && seen == Cover::kNone;
    }
    return all ? Cover::kAll : none ? Cover::kNone : Cover::kSome;
  }
  // The next tile that has a pair, or `end`.
  int next(int key, int end, bool& whole) const {
    for (; key < end; key += kOther) {
      const Cover seen = cover(key, end);
      whole = seen == Cover::kAll;
      if (seen != Cover::kNone) return key;
    }
    return end;
  }

  FOVEA_INLINE void add_tile(int key, int end, bool whole, int buffer) {
    const int mine = key + warp() * kMine;
    float e[1][kMine / 8][4];
    multiply_rows<1, kMine, kWidth, kRows, kOther>(shared.queries, 0, shared.keys[buffer],
                                                   warp() * kMine, e);
#pragma unroll
    for (int n = 0; n < kMine / 8; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int r = lane() / 4 + c / 2 * 8, j = mine + n * 8 + lane() % 4 * 2 + c % 2;
        const int head = head_of(r), row = row_of_query(r);
        const Place p{s.batch, head, row, s.position + row, j, j, row_index(a, s, head, row)};
        float& x = e[0][n][c];
        if (r < rows && j < end && (whole || Structure::allows(a.structure, p))) {
          const Scored scored = score_of(a, p, x, 1);
          x = scored.seen ? scored.e : -infinity_of(T());
        } else {
          x = -infinity_of(T());
        }
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if constexpr (Normaliser::kShifts) {
        float top = shift[half];
#pragma unroll
        for (int n = 0; n < kMine / 8; ++n)
          top = larger(top, larger(e[0][n][2 * half], e[0][n][2 * half + 1]));
        top = lanes_max<4>(top);
        const float rescale = shift[half] == -infinity_of(T()) ? 0 : exponential(shift[half] - top);
        total[half] *= rescale;
#pragma unroll
        for (int n = 0; n < kValueWidth / 8; ++n) {
          sums[0][n][2 * half] *= rescale;
          sums[0][n][2 * half + 1] *= rescale;
        }
        shift[half] = top;
      }
      const float base = Normaliser::base(shift[half], Normaliser::kUnit);
#pragma unroll
      for (int n = 0; n < kMine / 8; ++n) {
#pragma unroll
        for (int c = 2 * half; c < 2 * half + 2; ++c) {
          float& x = e[0][n][c];
          const bool there = x != -infinity_of(T());
          if constexpr (!Normaliser::kShifts) bad[half] |= there && !is_finite(x);
          seen[half] |= there;
          x = Normaliser::power_at(x, Normaliser::kUnit, base);
          total[half] += x;
          if constexpr (kDropout)
            x *= dropout_factor(a, shared.rows[lane() / 4 + half * 8].random,
                                mine + n * 8 + lane() % 4 * 2 + c % 2);
        }
      }
    }
    // Of a tile the warps look at once, each at its own keys.
    const bool has_bad = !whole && zero_bad<kOther, kValueWidth>(shared.values[buffer], shared.bad);
    multiply_columns<1, kMine, kValueWidth, kOther>(e, shared.values[buffer], warp() * kMine, sums);
    if (has_bad)
      add_bad<1, kMine, kValueWidth>(
          e, [&](int r) { return key_row_of<Stored>(a, a.value, s.batch, key_head, mine + r); },
          shared.bad + warp() * kMine, sums);
  }

  void run(int split, int splits) {
    for (int r = warp(); r < kRows; r += kMmaWarps) {
      const bool there = r < rows;
      const Stored* from =
          row_of<Stored>(a.query, s.batch, there ? head_of(r) : 0, there ? row_of_query(r) : 0);
      for (int c = lane() * 8; c < kWidth; c += kWarp * 8)
        copy_16(shared.queries + place_in<kRows, kWidth>(r, c), from + (there ? c : 0), there);
      if (there && lane() == 0) shared.rows[r] = row_data(a, s, head_of(r), row_of_query(r));
    }
    shift[0] = shift[1] = -infinity_of(T());
    // The keys that any of the heads may see, in parts of whole tiles.
    int first = s.keys, end = 0;
    for (int head = head_of(0); head <= head_of(rows - 1); ++head) {
      int low, high;
      key_range(a, s, head, 0, s.queries, low, high);
      first = least(first, low);
      end = most(end, high);
    }
    first = first / kOther * kOther;
    const int tiles = most(0, end - first + kOther - 1) / kOther,
              per_split = (tiles + splits - 1) / splits;
    int key = first + split * per_split * kOther, buffer = 0;
    end = least(end, key + per_split * kOther);
    bool whole, whole_after = false;
    key = next(key, end, whole);
    if (key < end) copy(key, end, buffer);
    for (; key < end; buffer ^= 1) {
      const int following = next(key + kOther, end, whole_after);
      wait_copies();
      __syncthreads();
      if (following < end) copy(following, end, buffer ^ 1);
      add_tile(key, end, whole, buffer);
      key = following;
      whole = whole_after;
    }
    wait_copies();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = lane() / 4 + half * 8;
      const float sum = lanes_sum<4>(total[half]);
      const bool any = lanes_any<4>(seen[half]), spoiled = lanes_any<4>(bad[half]) || sum != sum;
      if (r >= rows) continue;
      Part16& part = part_of(a, row_index(a, s, head_of(r), row_of_query(r)),
                             split * kMmaWarps + warp(), splits * kMmaWarps);
      if (lane() % 4 == 0) {
        part.shift = shift[half];
        part.total = sum;
        part.seen = any ? 1 : 0;
        part.bad = spoiled ? 1 : 0;
      }
#pragma unroll
      for (int n = 0; n < kValueWidth / 8; ++n) {
        part.sums[n * 8 + lane() % 4 * 2] = sums[0][n][2 * half];
        part.sums[n * 8 + lane() % 4 * 2 + 1] = sums[0][n][2 * half + 1];
      }
    }
  }
};

// A warp brings the parts of a row together, in their order.
inline void merge_row(const Arguments& a, const Sequence& s, int head, int row, int parts) {
  const Whole index = row_index(a, s, head, row);
  float shift = -infinity_of(T()), total = 0;
  bool seen = false, bad = false;
  for (int n = 0; n < parts; ++n) {
    const Part16& part = part_of(a, index, n, parts);
    shift = larger(shift, part.shift);
    seen |= part.seen != 0;
    bad |= part.bad != 0;
  }
  constexpr int kColumns = (kValueWidth + kWarp - 1) / kWarp;
  float sums[kColumns] = {};
  for (int n = 0; n < parts; ++n) {
    const Part16& part = part_of(a, index, n, parts);
    if (part.seen == 0) continue;
    const float factor = Normaliser::kShifts ? exponential(part.shift - shift) : 1;
    total += factor * part.total;
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
      if (c * kWarp + lane() < kValueWidth) sums[c] += factor * part.sums[c * kWarp + lane()];
  }
  Row made{0, 0, 0, bad ? kSpoiled : kEmpty};
  float factor = bad ? nan_of(T()) : T(0);
  if (!bad && seen) {
    made = Normaliser::finish(a, head, shift, total, 1);
    factor = Normaliser::factor(shift, made);
  }
  if (lane() == 0) keep_row(a, index, made, Normaliser::lse(made));
  Stored* out = row_of<Stored>(a.output, s.batch, head, row);
#pragma unroll
  for (int c = 0; c < kColumns; ++c)
    if (c * kWarp + lane() < kValueWidth)
      narrow(factor == 0 ? T(0) : factor * sums[c], out[c * kWarp + lane()]);
}

}  // namespace fovea::cuda

extern "C" __global__ void __launch_bounds__(128)
    fovea_forward(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  FOVEA_SHARED(bytes);
  auto& shared = *reinterpret_cast<MmaDecodeShared*>(bytes);
  const int key_head = static_cast<int>(blockIdx.x) % a.key_heads;
  const Sequence s = sequence_of(a, static_cast<int>(blockIdx.x) / a.key_heads);
  MmaDecode{a, shared, s, key_head, a.queries * (a.heads / a.key_heads)}.run(
      static_cast<int>(blockIdx.y), static_cast<int>(gridDim.y));
}

// Blocks as the rows there are, over the warps of one; the second number of the grid as before.
extern "C" __global__ void __launch_bounds__(128)
    fovea_merge(const __grid_constant__ fovea::cuda::Arguments a) {
  using namespace fovea::cuda;
  const Whole n = static_cast<Whole>(blockIdx.x) * kMmaWarps + warp();
  if (n >= a.rows) return;
  const int row = static_cast<int>(n % a.queries), head = static_cast<int>(n / a.queries % a.heads);
  merge_row(a, sequence_of(a, static_cast<int>(n / a.queries / a.heads)), head, row,
            static_cast<int>(a.scratch_row));
}
