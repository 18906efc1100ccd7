// Four warps on tensor cores. One side of a tile owns what is computed, 16 kM rows a warp; the other
// side comes kOther rows at a time, the next copied while this one is computed.
//
// A warp's products lie in registers: number c of column block n of row block m is row
// 16 m + lane / 4 + 8 (c / 2), column 8 n + 2 (lane % 4) + c % 2.
#pragma once

namespace fovea::cuda {

constexpr int kThreads = 128, kMmaWarps = kThreads / kWarp;
using Stored = Operand;  // and Value's

constexpr int pitch_of(int width) { return width + 8; }  // rows 16 bytes apart in the banks
constexpr int kPitch = pitch_of(kWidth), kValuePitch = pitch_of(kValueWidth);

inline int key_head_of(const Arguments& a, int head) { return head / (a.heads / a.key_heads); }

inline int lane() { return threadIdx.x % kWarp; }
inline int warp() { return threadIdx.x / kWarp; }

// The first of a warp's rows.
template <int kM, int kColumns>
const Stored* of_warp(const Stored* rows) {
  return rows + warp() * kM * 16 * pitch_of(kColumns);
}

// Rows of an operand to shared memory, zeros beyond the count.
template <int kRows, int kColumns>
void copy_rows(Stored* to, const Rows& rows, int batch, int head, Whole first, int count) {
  constexpr int kPieces = kColumns / 8;
  const Stored* from = row_of<Stored>(rows, batch, head, first);
  for (int n = threadIdx.x; n < kRows * kPieces; n += kThreads) {
    const int r = n / kPieces, c = n % kPieces * 8;
    const bool there = r < count;
    copy_16(to + r * pitch_of(kColumns) + c, from + (there ? r * rows.row + c : 0), there);
  }
}

// products[m][n] = own rows, of this warp . other rows
template <int kM, int kOther, int kColumns>
FOVEA_INLINE void multiply_rows(const Stored* own, const Stored* other,
                                float (&products)[kM][kOther / 8][4]) {
  constexpr int kRowPitch = pitch_of(kColumns);
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
      load_matrices(a[m], own + (m * 16 + lane() % 16) * kRowPitch + d + lane() / 16 * 8);
#pragma unroll
    for (int n = 0; n < kOther / 16; ++n) {
      Word b[4];
      load_matrices(
          b, other + (n * 16 + lane() / 16 * 8 + lane() % 8) * kRowPitch + d + lane() / 8 % 2 * 8);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply(products[m][2 * n], a[m], b[0], b[1], Stored());
        multiply(products[m][2 * n + 1], a[m], b[2], b[3], Stored());
      }
    }
  }
}

// sums += weights . other rows
template <int kM, int kOther, int kColumns>
FOVEA_INLINE void multiply_columns(const float (&weights)[kM][kOther / 8][4], const Stored* other,
                                   float (&sums)[kM][kColumns / 8][4]) {
  constexpr int kRowPitch = pitch_of(kColumns);
#pragma unroll
  for (int k = 0; k < kOther / 16; ++k) {
    Word a[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      const auto& left = weights[m][2 * k];
      const auto& right = weights[m][2 * k + 1];
      a[m][0] = pack(left[0], left[1], Stored());
      a[m][1] = pack(left[2], left[3], Stored());
      a[m][2] = pack(right[0], right[1], Stored());
      a[m][3] = pack(right[2], right[3], Stored());
    }
#pragma unroll
    for (int n = 0; n < kColumns / 16; ++n) {
      Word b[4];
      load_transposed(b, other + (k * 16 + lane() % 16) * kRowPitch + n * 16 + lane() / 16 * 8);
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

inline bool has_bad(Word pair, BFloat16) {
  return (pair & 0x7f80u) == 0x7f80u || (pair & 0x7f800000u) == 0x7f800000u;
}
inline bool has_bad(Word pair, Half) {
  return (pair & 0x7c00u) == 0x7c00u || (pair & 0x7c000000u) == 0x7c000000u;
}

// Whether there are such rows, the same for all threads; `bad` is shared, one number a row.
template <int kOther, int kColumns>
FOVEA_APART bool zero_bad(Stored* other, int* bad) {
  constexpr int kRowPitch = pitch_of(kColumns), kPairs = kColumns / 2;
  for (int r = threadIdx.x; r < kOther; r += kThreads) bad[r] = 0;
  __syncthreads();
  bool any = false;
  for (int n = threadIdx.x; n < kOther * kPairs; n += kThreads) {
    const int r = n / kPairs;
    if (!has_bad(reinterpret_cast<const Word*>(other + r * kRowPitch)[n % kPairs], Stored()))
      continue;
    bad[r] = 1;
    any = true;
  }
  if (!__syncthreads_or(any)) return false;
  for (int n = threadIdx.x; n < kOther * kColumns; n += kThreads)
    if (bad[n / kColumns]) other[n / kColumns * kRowPitch + n % kColumns].bits = 0;
  __syncthreads();
  return true;
}

template <int kM, int kOther, int kColumns>
FOVEA_INLINE void add_bad(const float (&weights)[kM][kOther / 8][4], const Rows& rows, int batch,
                          int head, Whole first, const int* bad,
                          float (&sums)[kM][kColumns / 8][4]) {
  for (int r = 0; r < kOther; ++r) {
    if (!bad[r]) continue;
    const Stored* row = row_of<Stored>(rows, batch, head, first + r);
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

// sums += weights . other rows, of which some pairs may be left out.
template <int kM, int kOther, int kColumns>
FOVEA_INLINE void multiply_seen(bool all_seen, const float (&weights)[kM][kOther / 8][4],
                                Stored* other, const Rows& rows, int batch, int head, Whole first,
                                int* bad, float (&sums)[kM][kColumns / 8][4]) {
  const bool has_bad = !all_seen && zero_bad<kOther, kColumns>(other, bad);
  multiply_columns<kM, kOther, kColumns>(weights, other, sums);
  if (!has_bad) return;
  add_bad<kM, kOther, kColumns>(weights, rows, batch, head, first, bad, sums);
  __syncthreads();
}

// A rectangle of queries x keys of a sequence. Small, since registers are few.
struct Rectangle {
  int head;
  int row, rows;
  int key, keys;
  bool whole;
};
inline bool rectangle_of(const Arguments& a, const Sequence& s, int head, int row, int most_rows,
                         int key, int most_keys, Rectangle& to) {
  to = {head, row, least(most_rows, s.queries - row), key, least(most_keys, s.keys - key), false};
  if (to.rows <= 0 || to.keys <= 0) return false;
  const Cover cover =
      Structure::cover(a.structure, {s.batch, head, row, to.rows, s.position + row, key, to.keys});
  to.whole = cover == Cover::kAll && to.rows == most_rows && to.keys == most_keys;
  return cover != Cover::kNone;
}

// products[m][n][c] = visit(m, n, c, place, scored, data, seen) of the pairs that are seen, `absent`
// of the others, which `visit` may be called for too.
template <bool kAllSeen, bool kOwnerIsQuery, int kM, int kOther, class Visit>
FOVEA_INLINE void replace_pairs(const Arguments& a, const Sequence& s, const Rectangle& at,
                                const RowData* rows, float (&products)[kM][kOther / 8][4],
                                float absent, Visit visit) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kOther / 8; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int own = (warp() * kM + m) * 16 + lane() / 4 + c / 2 * 8,
                  other = n * 8 + lane() % 4 * 2 + c % 2;
        const int r = kOwnerIsQuery ? own : other, k = kOwnerIsQuery ? other : own;
        const int row = at.row + r, key = at.key + k;
        const Place p{
            s.batch, at.head, row, s.position + row, key, key, row_index(a, s, at.head, row)};
        const bool allowed =
            kAllSeen || (r < at.rows && k < at.keys && Structure::allows(a.structure, p));
        float& x = products[m][n][c];
        // Without a branch where nothing is read that may not be there.
        if constexpr (!kAllSeen && Modifiers::kReads) {
          if (!allowed) {
            x = absent;
            continue;
          }
        }
        const Scored scored = score_of(a, p, x, 1);
        const bool seen = allowed && scored.seen;
        const float made = visit(m, n, c, p, scored, rows[r], seen);
        x = seen ? made : absent;
      }
    }
  }
}
template <bool kOwnerIsQuery, int kM, int kOther, class Visit>
FOVEA_INLINE void each_pair(const Arguments& a, const Sequence& s, const Rectangle& at,
                            const RowData* rows, float (&products)[kM][kOther / 8][4], float absent,
                            Visit visit) {
  if (at.whole)
    replace_pairs<true, kOwnerIsQuery, kM, kOther>(a, s, at, rows, products, absent, visit);
  else
    replace_pairs<false, kOwnerIsQuery, kM, kOther>(a, s, at, rows, products, absent, visit);
}

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
