// Four warps on tensor cores. One side of a tile owns what is computed, 16 kM rows a warp; the other
// side comes kOther rows at a time, the next copied while this one is computed.
//
// A warp's products lie in registers: number c of column block n of row block m is row
// 16 m + lane / 4 + 8 (c / 2), column 8 n + 2 (lane % 4) + c % 2.
#pragma once

namespace fovea::cuda {

constexpr int kThreads = kMmaWarps * kWarp;     // the tiling is the program's
using Stored = Operand;                         // and Value's
constexpr bool kBare = Modifiers::kCount == 0;  // the score is a multiple of the product

// Where number c of row r of a tile of kRows rows lies: in panels (wgmma.h), or rows apart by 16
// bytes in the banks.
constexpr int pitch_of(int width) { return kPanels ? width : width + 8; }
template <int kRows, int kColumns>
FOVEA_INLINE int place_in(int r, int c) {
  if constexpr (kPanels) return c / 64 * (kRows * 64) + r * 64 + ((c / 8 ^ r) % 8) * 8 + c % 8;
  return r * pitch_of(kColumns) + c;
}
constexpr int kPitch = pitch_of(kWidth), kValuePitch = pitch_of(kValueWidth);
constexpr int kAligned = kPanels ? 1024 : 16;  // bytes

inline int key_head_of(const Arguments& a, int head) { return head / (a.heads / a.key_heads); }

inline int lane() { return threadIdx.x % kWarp; }
inline int warp() { return threadIdx.x / kWarp; }

// The pieces of 16 bytes of rows in shared memory that are this thread's: body(row, column), a step of
// rows apart where the threads divide evenly over the columns.
template <int kRows, int kColumns, class Body>
FOVEA_INLINE void each_piece(Body body) {
  constexpr int kPieces = kColumns / 8;
  if constexpr (kThreads % kPieces == 0) {
    constexpr int kStep = kThreads / kPieces;
    const int r = threadIdx.x / kPieces, c = threadIdx.x % kPieces * 8;
#pragma unroll
    for (int n = 0; n < kRows; n += kStep)
      if (kRows % kStep == 0 || r + n < kRows) body(r + n, c);
  } else {
    for (int n = threadIdx.x; n < kRows * kPieces; n += kThreads)
      body(n / kPieces, n % kPieces * 8);
  }
}

// Rows of an operand to shared memory, zeros beyond the count.
template <int kRows, int kColumns>
FOVEA_INLINE void copy_rows(Stored* to, const Rows& rows, int batch, int head, Whole first,
                            int count) {
  const Stored* const from = row_of<Stored>(rows, batch, head, first);
  // Rows of a tile lie less than 2^31 numbers apart, or the tile is copied with care.
  const bool near = rows.row < (Whole(1) << 31) / kRows;
  const int step = static_cast<int>(rows.row);
  if (count >= kRows && near) {
    each_piece<kRows, kColumns>([&](int r, int c) {
      copy_16(to + place_in<kRows, kColumns>(r, c), from + (r * step + c), true);
    });
  } else {
    each_piece<kRows, kColumns>([&](int r, int c) {
      const bool there = r < count;
      copy_16(to + place_in<kRows, kColumns>(r, c), from + (there ? r * rows.row + c : 0), there);
    });
  }
}

// Copies are there for all threads after the next barrier.
FOVEA_INLINE void end_copies() {
  wait_copies();
  if constexpr (kGroups) publish_copies();
}

// Products of groups of warps come later: before their numbers are read, `wait_products` names them.
template <int kM, int kBlocks, class... More>
FOVEA_INLINE void wait_products(float (&products)[kM][kBlocks][4], More&... more) {
  if constexpr (kGroups) {
    if constexpr (sizeof...(more) == 0)
      wait_group<0>();
    else
      wait_products(more...);
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) keep_after(products[m][n]);
  }
}

// products[m][n] = own rows, of this warp . kOther other rows. kOwnRows, kOtherRows: those of the
// tiles they lie in; `first`: the first of the other rows.
template <int kM, int kOther, int kColumns, int kOwnRows, int kOtherRows>
FOVEA_INLINE void multiply_rows(const Stored* own, int own_first, const Stored* other, int first,
                                float (&products)[kM][kOther / 8][4]) {
  if constexpr (kGroups && kM == 1) {
    const Tile a = tile_at(own + own_first / 64 * 64 * 64, 0), b = tile_at(other + first * 64, 0);
    begin_group();
#pragma unroll
    for (int d = 0; d < kColumns; d += 16)
      multiply_group(products[0], a + (d / 64 * kOwnRows * 8 + d % 64 / 8),
                     b + (d / 64 * kOtherRows * 8 + d % 64 / 8), d > 0, Stored());
    end_group();
    return;
  }
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kOther / 8; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) products[m][n][c] = 0;
#pragma unroll
  for (int d = 0; d < kColumns; d += 16) {
    Word a[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m)
      load_matrices(a[m], own + place_in<kOwnRows, kColumns>(own_first + m * 16 + lane() % 16,
                                                             d + lane() / 16 * 8));
#pragma unroll
    for (int n = 0; n < kOther / 16; ++n) {
      Word b[4];
      load_matrices(
          b, other + place_in<kOtherRows, kColumns>(first + n * 16 + lane() / 16 * 8 + lane() % 8,
                                                    d + lane() / 8 % 2 * 8));
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply(products[m][2 * n], a[m], b[0], b[1], Stored());
        multiply(products[m][2 * n + 1], a[m], b[2], b[3], Stored());
      }
    }
  }
}

template <int kOther>
FOVEA_INLINE void pack_weights(const float (&weights)[kOther / 8][4], int k, Word (&to)[4]) {
  const auto& left = weights[2 * k];
  const auto& right = weights[2 * k + 1];
  to[0] = pack(left[0], left[1], Stored());
  to[1] = pack(left[2], left[3], Stored());
  to[2] = pack(right[0], right[1], Stored());
  to[3] = pack(right[2], right[3], Stored());
}

// sums += weights . other rows
template <int kM, int kOther, int kColumns, int kOtherRows>
FOVEA_INLINE void multiply_columns(const float (&weights)[kM][kOther / 8][4], const Stored* other,
                                   int first, float (&sums)[kM][kColumns / 8][4]) {
  if constexpr (kGroups && kM == 1) {
    const Tile b = tile_at(other + first * 64, kOtherRows * 128);
    Word a[kOther / 16][4];
#pragma unroll
    for (int k = 0; k < kOther / 16; ++k) pack_weights<kOther>(weights[0], k, a[k]);
    begin_group();
#pragma unroll
    for (int k = 0; k < kOther / 16; ++k) multiply_group(sums[0], a[k], b + k * 128, Stored());
    end_group();
    return;
  }
#pragma unroll
  for (int k = 0; k < kOther / 16; ++k) {
    Word a[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) pack_weights<kOther>(weights[m], k, a[m]);
#pragma unroll
    for (int n = 0; n < kColumns / 16; ++n) {
      Word b[4];
      load_transposed(b, other + place_in<kOtherRows, kColumns>(first + k * 16 + lane() % 16,
                                                                n * 16 + lane() / 16 * 8));
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply(sums[m][2 * n], a[m], b[0], b[1], Stored());
        multiply(sums[m][2 * n + 1], a[m], b[2], b[3], Stored());
      }
    }
  }
}

// Where pairs are left out, a weight of 0 must take nothing from a row that is not finite: such rows
// are zeroed for the product, and `add_bad` adds them one by one.

// Whether this thread finds a number that is not finite.
template <int kOther, int kColumns>
FOVEA_INLINE bool finds_bad(const Stored* other) {
  struct alignas(16) Piece {
    Word pairs[4];
  };
  Word sum = 0;
  each_piece<kOther, kColumns>([&](int r, int c) {
    const Piece piece = *reinterpret_cast<const Piece*>(other + place_in<kOther, kColumns>(r, c));
#pragma unroll
    for (int k = 0; k < 4; ++k) sum = add_nothing(sum, piece.pairs[k], Stored());
  });
  return sum != 0;
}

// Marks such rows of kOther from the first and zeroes them; `bad` is shared, one number per row.
template <int kOther, int kColumns, int kOtherRows>
FOVEA_APART void zero_rows(Stored* other, int first, int* bad) {
  constexpr int kPairs = kColumns / 2;
  const auto at = [&](int n) {
    return reinterpret_cast<Word*>(
        other + place_in<kOtherRows, kColumns>(first + n / kPairs, n % kPairs * 2));
  };
  for (int r = threadIdx.x; r < kOther; r += kThreads) bad[r] = 0;
  __syncthreads();
  for (int n = threadIdx.x; n < kOther * kPairs; n += kThreads)
    if (add_nothing(0, *at(n), Stored()) != 0) bad[n / kPairs] = 1;
  __syncthreads();
  for (int n = threadIdx.x; n < kOther * kPairs; n += kThreads)
    if (bad[n / kPairs]) *at(n) = 0;
  end_copies();
  __syncthreads();
}

// Whether there are such rows, the same for all threads.
template <int kOther, int kColumns>
FOVEA_INLINE bool zero_bad(Stored* other, int* bad) {
  if (!__syncthreads_or(finds_bad<kOther, kColumns>(other))) return false;
  zero_rows<kOther, kColumns, kOther>(other, 0, bad);
  return true;
}

template <int kM, int kOther, int kColumns, class RowAt>
FOVEA_INLINE void add_bad(const float (&weights)[kM][kOther / 8][4], RowAt row_at, const int* bad,
                          float (&sums)[kM][kColumns / 8][4]) {
  for (int r = 0; r < kOther; ++r) {
    if (!bad[r]) continue;
    const Stored* row = row_at(r);
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        // By masks: a place that is chosen at run time would put the weights into memory.
        Word bits = 0;
#pragma unroll
        for (int n = 0; n < kOther / 8; ++n) {
          const Word even = n == r / 8 && r % 2 == 0 ? ~0u : 0, odd = n == r / 8 && r % 2 ? ~0u : 0;
          bits |= (__float_as_uint(weights[m][n][2 * half]) & even) |
                  (__float_as_uint(weights[m][n][2 * half + 1]) & odd);
        }
        float weight = __uint_as_float(bits);
        weight = __shfl_sync(~0u, weight, (lane() & ~3) | r % 8 / 2);
        if (weight == 0) continue;
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
          for (int c = 0; c < 2; ++c)
            sums[m][n][2 * half + c] += weight * widen(row[n * 8 + lane() % 4 * 2 + c]);
      }
    }
  }
}

// sums += weights . other rows (later, as above), from `step`; `has_bad`: whether some of those are not finite, and pairs left out.
template <int kM, int kOther, int kColumns, int kOtherRows>
FOVEA_INLINE void multiply_seen(bool has_bad, const float (&weights)[kM][kOther / 8][4],
                                Stored* other, int step, const Rows& rows, int batch, int head,
                                Whole first, int* bad, float (&sums)[kM][kColumns / 8][4]) {
  if (has_bad) zero_rows<kOther, kColumns, kOtherRows>(other, step, bad);
  multiply_columns<kM, kOther, kColumns, kOtherRows>(weights, other, step, sums);
  if (!has_bad) return;
  wait_products(sums);
  add_bad<kM, kOther, kColumns>(
      weights, [&](int r) { return row_of<Stored>(rows, batch, head, first + r); }, bad, sums);
  __syncthreads();
}

// A rectangle of queries x keys of a sequence. Small, since registers are few.
struct Rectangle {
  int head;
  int row, rows;
  int key, keys;
  bool whole;
};
FOVEA_INLINE Cover cover_of(const Arguments& a, const Sequence& s, const Rectangle& at) {
  if (at.rows <= 0 || at.keys <= 0) return Cover::kNone;
  return Structure::cover(
      a.structure, {s.batch, at.head, at.row, at.rows, s.position + at.row, at.key, at.keys});
}
FOVEA_INLINE Rectangle clipped(const Sequence& s, int head, int row, int rows, int key, int keys) {
  return {head, row, least(rows, s.queries - row), key, least(keys, s.keys - key), false};
}

// Looks at rectangles one after another, a step of rows or keys apart. For a structure that reads memory,
// many of them are examined at once, one by each thread.
struct Covers {
  unsigned char* kept;  // shared, kThreads numbers
  int head = -1, first = 0;

  // Whether the rectangle has a pair. `row_step`, `key_step`: from one to the next.
  FOVEA_INLINE bool look(const Arguments& a, const Sequence& s, int of_head, int row, int rows,
                         int row_step, int key, int keys, int key_step, Rectangle& to) {
    to = clipped(s, of_head, row, rows, key, keys);
    Cover cover;
    if constexpr (Structure::kBand) {
      cover = cover_of(a, s, to);
    } else {
      const int at = row_step ? row / row_step : key / key_step;
      if (of_head != head || at < first || at >= first + kThreads) {
        head = of_head;
        first = at;
        const int n = static_cast<int>(threadIdx.x);
        __syncthreads();
        kept[n] = static_cast<unsigned char>(cover_of(
            a, s, clipped(s, of_head, row + n * row_step, rows, key + n * key_step, keys)));
        __syncthreads();
      }
      cover = static_cast<Cover>(kept[at - first]);
    }
    to.whole = cover == Cover::kAll && to.rows == rows && to.keys == keys;
    return cover != Cover::kNone;
  }
};

// A part of a rectangle, of `rows` x `keys`. Only bands are looked at again: others read memory.
inline bool part_of(const Arguments& a, const Sequence& s, const Rectangle& at, int row, int rows,
                    int key, int keys, Rectangle& to) {
  if constexpr (Structure::kBand) {
    to = clipped(s, at.head, at.row + row, rows, at.key + key, keys);
    const Cover cover = cover_of(a, s, to);
    to.whole = cover == Cover::kAll && to.rows == rows && to.keys == keys;
    return cover != Cover::kNone;
  }
  to = {at.head, at.row + row, least(rows, at.rows - row), at.key + key, least(keys, at.keys - key),
        at.whole};
  return to.rows > 0 && to.keys > 0;
}

// Which pairs of a rectangle are seen, of this thread: number c of block n of row block m.
template <bool kOwnerIsQuery>
struct Mask {
  const Arguments& a;
  const Sequence& s;
  const Rectangle& at;
  int own, other;        // of number 0 of the first blocks
  unsigned start, size;  // of a band: i - j from its low end, and how many there are

  FOVEA_INLINE Mask(const Arguments& a, const Sequence& s, const Rectangle& at, int own)
      : a(a), s(s), at(at), own(own), other(lane() % 4 * 2) {
    constexpr int kFar = 0x7fffffff;
    int low = -kFar, high = kFar;
    if constexpr (Structure::kBand) Structure::narrow_band(a.structure, low, high);
    const int apart = kOwnerIsQuery ? own - other : other - own;
    start =
        static_cast<unsigned>(s.position + at.row - at.key + apart) - static_cast<unsigned>(low);
    size = low > high ? 0 : static_cast<unsigned>(high) - static_cast<unsigned>(low) + 1;
  }
  FOVEA_INLINE int row(int m, int n, int c) const {
    return kOwnerIsQuery ? own + m * 16 + c / 2 * 8 : other + n * 8 + c % 2;
  }
  FOVEA_INLINE int key(int m, int n, int c) const {
    return kOwnerIsQuery ? other + n * 8 + c % 2 : own + m * 16 + c / 2 * 8;
  }
  FOVEA_INLINE Place place(int m, int n, int c) const {
    return place_of(at.row + row(m, n, c), at.key + key(m, n, c));
  }
  FOVEA_INLINE Place place_of(int r, int k) const {
    return {s.batch, at.head, r, s.position + r, k, k, row_index(a, s, at.head, r)};
  }
  // Rows that are not there weigh nothing.
  FOVEA_INLINE bool allows(int m, int n, int c) const {
    if constexpr (Structure::kBand && !Modifiers::kReads) {
      const int apart = m * 16 + c / 2 * 8 - n * 8 - c % 2;
      const unsigned from = start + static_cast<unsigned>(kOwnerIsQuery ? apart : -apart);
      return from < size && key(m, n, c) < at.keys;
    }
    // Nothing is read beyond the last row and key, and there is no branch.
    const int r = row(m, n, c), k = key(m, n, c);
    const bool there = (r < at.rows) & (k < at.keys);
    const Place p = place_of(at.row + least(r, at.rows - 1), at.key + least(k, at.keys - 1));
    return there & Structure::allows(a.structure, p);
  }
};

// What the first modifier reads of a rectangle's pairs, asked for before their products are there. Of
// a rectangle that is not whole pairs are read one by one.
template <int kM, int kOther>
struct Given {
  static constexpr bool kEarly = kPanels && Modifiers::kReadsFirst;  // else registers are short
  static constexpr int kBlocks = kEarly ? kOther / 8 : 1;
  float numbers[kM][kBlocks][4];

  template <bool kOwnerIsQuery>
  FOVEA_INLINE void read(const Arguments& a, const Mask<kOwnerIsQuery>& mask) {
    if constexpr (!kEarly) return;
    if (!mask.at.whole) return;
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int n = 0; n < kBlocks; ++n)
#pragma unroll
        for (int c = 0; c < 4; c += 2)
          Modifiers::read_pair(a.modifier, mask.place(m, n, c), kOwnerIsQuery, numbers[m][n][c],
                               numbers[m][n][c + 1]);
  }
  // The pair's score through the modifiers.
  template <bool kAllSeen, bool kOwnerIsQuery>
  FOVEA_INLINE float value(const Arguments& a, const Mask<kOwnerIsQuery>& mask, int m, int n, int c,
                           float e, float* steps) const {
    if constexpr (kAllSeen && kEarly)
      return Modifiers::value_with(a.modifier, mask.place(m, n, c), e, numbers[m][n][c], steps);
    return Modifiers::value(a.modifier, mask.place(m, n, c), e, steps);
  }
};

template <int kM, int kColumns>
FOVEA_INLINE void write_rows(const Rows& rows, int batch, int head, Whole first, int count,
                             const float (&sums)[kM][kColumns / 8][4],
                             const float (&factors)[kM][2]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = (warp() * kM + m) * 16 + lane() / 4 + half * 8;
      if (r >= count) continue;
      Stored* row = row_of<Stored>(rows, batch, head, first + r);
      const float factor = factors[m][half];
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
        const float x = factor == 0 ? 0 : factor * sums[m][n][2 * half],
                    y = factor == 0 ? 0 : factor * sums[m][n][2 * half + 1];
        *reinterpret_cast<Word*>(row + n * 8 + lane() % 4 * 2) = pack(x, y, Stored());
      }
    }
  }
}

}  // namespace fovea::cuda
