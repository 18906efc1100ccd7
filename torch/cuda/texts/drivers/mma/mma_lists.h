// What the drivers of thresholds share: tensor cores make all scores, and of each row only those that
// may have weight are kept, in short lists. Sums over keys or queries are taken from the lists alone.
#pragma once

namespace fovea::cuda {

struct alignas(8) Entry {
  float x;    // a score, a weight, a product
  int other;  // the key of a row of queries, the query of a row of keys
};
constexpr int kStepBlocks = 4, kStepEntries = 8 * kStepBlocks;  // what a row may gain in a step
constexpr int kKept = kRoom - kStepEntries;                     // so that a step has room
constexpr int kListPitch = kRoom + 4;  // lists of rows start in other banks
static_assert(kKept > 0 && kRoom % 4 == 0);

inline float larger_or_nan(float x, float y) {
#ifdef __CUDACC_RTC__
  float z;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
#else
  return x != x ? x : y != y ? y : larger(x, y);
#endif
}

// Of a warp's 16 rows. The four lanes of a row look at one entry each at a time.
struct Lists {
  Entry* entries;         // of the warp, shared: [16][kListPitch]
  int count[2] = {0, 0};  // of a lane's two rows

  FOVEA_INLINE Entry& at(int half, int slot) const {
    return entries[(lane() / 4 + 8 * half) * kListPitch + slot];
  }
  // Of a vote, those of this row.
  static FOVEA_INLINE unsigned of_row(unsigned votes) { return votes >> (lane() & ~3) & 15; }
  static FOVEA_INLINE int before(unsigned mine) { return __popc(mine & ((1u << lane() % 4) - 1)); }

  FOVEA_INLINE void add(int half, bool wanted, Entry entry) {
    const unsigned mine = of_row(__ballot_sync(~0u, wanted));
    if (wanted) at(half, count[half] + before(mine)) = entry;
    count[half] += __popc(mine);
  }
  // x where e is above its bound, of other rows from `first`; `full` makes room.
  template <int kOther, class Bound, class Full>
  FOVEA_INLINE void collect(const float (&e)[kOther / 8][4], const float (&x)[kOther / 8][4],
                            int first, Bound bound, Full full) {
    static_assert(kOther % (8 * kStepBlocks) == 0);
#pragma unroll
    for (int block = 0; block < kOther / 8; block += kStepBlocks) {
      bool any[kStepBlocks];  // most blocks have none
#pragma unroll
      for (int n = 0; n < kStepBlocks; ++n) {
        any[n] = false;
#pragma unroll
        for (int c = 0; c < 4; ++c) any[n] |= e[block + n][c] > bound(block + n, c);
      }
      if (!__ballot_sync(~0u, any[0] | any[1] | any[2] | any[3])) continue;
      if (__ballot_sync(~0u, most(count[0], count[1]) > kKept)) full();
#pragma unroll
      for (int n = 0; n < kStepBlocks; ++n) {
        if (!__ballot_sync(~0u, any[n])) continue;
#pragma unroll
        for (int c = 0; c < 4; ++c)
          add(c / 2, e[block + n][c] > bound(block + n, c),
              {x[block + n][c], first + (block + n) * 8 + lane() % 4 * 2 + c % 2});
      }
    }
    __syncwarp();
  }
  // body(x, entry's number) for the entries of a lane, four at a time, so that their loads overlap.
  template <class Visit>
  FOVEA_INLINE void each(int half, Visit visit) const {
    const int count_here = count[half];
    for (int n = lane() % 4; n < count_here; n += 16) {
      Entry four[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) four[k] = at(half, least(n + 4 * k, kRoom - 1));
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (n + 4 * k < count_here) visit(four[k]);
    }
  }
  // Keeps what `keeps` says, which may change an entry, in their order.
  template <class Keeps>
  FOVEA_INLINE void keep(int half, Keeps keeps) {
    __syncwarp();
    int kept = 0;
    for (int n = lane() % 4; __ballot_sync(~0u, n < count[half]); n += 4) {
      Entry entry{0, 0};
      bool stays = false;
      if (n < count[half]) {
        entry = at(half, n);
        stays = keeps(entry);
      }
      const unsigned mine = of_row(__ballot_sync(~0u, stays));
      if (stays) at(half, kept + before(mine)) = entry;
      kept += __popc(mine);
    }
    count[half] = kept;
    __syncwarp();
  }
};

// ---- rows of memory, eight lanes each: four rows of the warp at a time ----

constexpr int kRowLanes = 8;
constexpr int pieces_of(int width) { return (width / 8 + kRowLanes - 1) / kRowLanes; }

struct alignas(16) Piece {
  Stored x[8];
};

// A lane's columns of a row: pieces lane % 8, 8 + lane % 8, ...
template <int kColumns>
struct RowPart {
  Piece pieces[pieces_of(kColumns)];

  static FOVEA_INLINE bool has(int n) {
    return kColumns % (8 * kRowLanes) == 0 || lane() % kRowLanes + n * kRowLanes < kColumns / 8;
  }
  FOVEA_INLINE void read(const Stored* row, bool there) {
#pragma unroll
    for (int n = 0; n < pieces_of(kColumns); ++n) {
      if (there && has(n))
        pieces[n] = reinterpret_cast<const Piece*>(row)[lane() % kRowLanes + n * kRowLanes];
      else
        pieces[n] = Piece{};
    }
  }
  FOVEA_INLINE float times(const RowPart& other) const {
    float sum = 0;
#pragma unroll
    for (int n = 0; n < pieces_of(kColumns); ++n)
#pragma unroll
      for (int c = 0; c < 8; ++c) sum += widen(pieces[n].x[c]) * widen(other.pieces[n].x[c]);
    return lanes_sum<kRowLanes>(sum);
  }
};

// Sums of rows in float32.
template <int kColumns>
struct RowSums {
  float sums[pieces_of(kColumns)][8];

  FOVEA_INLINE void start() {
#pragma unroll
    for (int n = 0; n < pieces_of(kColumns); ++n)
#pragma unroll
      for (int c = 0; c < 8; ++c) sums[n][c] = 0;
  }
  FOVEA_INLINE void add(float factor, const RowPart<kColumns>& row) {
    if (factor == 0) return;
#pragma unroll
    for (int n = 0; n < pieces_of(kColumns); ++n)
#pragma unroll
      for (int c = 0; c < 8; ++c) sums[n][c] += factor * widen(row.pieces[n].x[c]);
  }
  FOVEA_INLINE void spoil() {
#pragma unroll
    for (int n = 0; n < pieces_of(kColumns); ++n)
#pragma unroll
      for (int c = 0; c < 8; ++c) sums[n][c] = nan_of(T());
  }
  FOVEA_INLINE void write(Stored* to, float factor) const {
#pragma unroll
    for (int n = 0; n < pieces_of(kColumns); ++n) {
      if (!RowPart<kColumns>::has(n)) continue;
      Piece piece;
#pragma unroll
      for (int c = 0; c < 8; ++c) narrow(factor == 0 ? 0 : factor * sums[n][c], piece.x[c]);
      reinterpret_cast<Piece*>(to)[lane() % kRowLanes + n * kRowLanes] = piece;
    }
  }
};

// A warp's rows, four at a time, of which this lane looks at one: body(its number among the 16).
template <class Body>
FOVEA_INLINE void each_four_rows(Body body) {
#pragma unroll 1
  for (int first = 0; first < 16; first += kWarp / kRowLanes) body(first + lane() / kRowLanes);
}

// The entries of row r, four at a time: body(entries, which are there). The same number of calls in
// all lanes.
template <class Body>
FOVEA_INLINE void each_four_entries(const Lists& lists, int r, Body body) {
  const int base = r % 8 * 4, low = __shfl_sync(~0u, lists.count[0], base),
            high = __shfl_sync(~0u, lists.count[1], base), count = r < 8 ? low : high;
  int longest = most(count, __shfl_xor_sync(~0u, count, 8));
  longest = most(longest, __shfl_xor_sync(~0u, longest, 16));
#pragma unroll 1
  for (int n = 0; n < longest; n += 4) {
    Entry entries[4];
    bool there[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      there[q] = n + q < count;
      entries[q] = there[q] ? lists.entries[r * kListPitch + n + q] : Entry{0, 0};
    }
    body(entries, there);
  }
}

// A score that is no number is above every bound but infinity: its row is spoiled, and so is what gets
// weight from it.
template <int kBlocks>
FOVEA_INLINE void raise_bad(float (&e)[kBlocks][4]) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n)
#pragma unroll
    for (int c = 0; c < 4; ++c) e[n][c] = fminf(e[n][c], infinity_of(T()));
}

// The score of a product, or -infinity where the pair is not seen.
template <bool kAllSeen, bool kOwnerIsQuery, int kOther>
FOVEA_INLINE void scores_of(const Arguments& a, const Mask<kOwnerIsQuery>& mask,
                            const Given<1, kOther>& given, const float (&x)[kOther / 8][4],
                            float (&e)[kOther / 8][4]) {
  const float scale = static_cast<float>(a.scale);
#pragma unroll
  for (int n = 0; n < kOther / 8; ++n) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      bool seen = kAllSeen || mask.allows(0, n, c);
      float y = scale * x[n][c];
      if constexpr (!kBare) {
        if (!kAllSeen && Modifiers::kReads && !seen) {
          e[n][c] = -infinity_of(T());
          continue;
        }
        float steps[Modifiers::kCount + 1];
        seen = seen && y != -infinity_of(T());
        y = given.value(a, mask, 0, n, c, y, steps);
      }
      e[n][c] = seen ? y : -infinity_of(T());
    }
  }
}

}  // namespace fovea::cuda
