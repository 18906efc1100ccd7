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

inline int lane() { return threadIdx.x % kWarp; }
inline int warp() { return threadIdx.x / kWarp; }

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

// products[m][n] = own rows . other rows
template <int kM, int kOther, int kColumns>
void multiply_rows(const Stored* own, const Stored* other, float (&products)[kM][kOther / 8][4]) {
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
      load_matrices(a[m],
                    own + ((warp() * kM + m) * 16 + lane() % 16) * kRowPitch + d + lane() / 16 * 8);
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
void multiply_columns(const float (&weights)[kM][kOther / 8][4], const Stored* other,
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

// The same where a weight of 0 must take nothing from a row that is not finite: such rows are zeroed
// for the product and added one by one. `bad` is shared, one number a row.
template <int kM, int kOther, int kColumns>
void multiply_seen(const float (&weights)[kM][kOther / 8][4], Stored* other, const Rows& rows,
                   int batch, int head, Whole first, int* bad, float (&sums)[kM][kColumns / 8][4]) {
  constexpr int kRowPitch = pitch_of(kColumns);
  for (int r = threadIdx.x; r < kOther; r += kThreads) bad[r] = 0;
  __syncthreads();
  bool any = false;
  for (int n = threadIdx.x; n < kOther * kColumns; n += kThreads) {
    const int r = n / kColumns;
    if (is_finite(widen(other[r * kRowPitch + n % kColumns]))) continue;
    bad[r] = 1;
    any = true;
  }
  if (__syncthreads_or(any)) {
    for (int n = threadIdx.x; n < kOther * kColumns; n += kThreads)
      if (bad[n / kColumns]) other[n / kColumns * kRowPitch + n % kColumns].bits = 0;
    __syncthreads();
    for (int r = 0; r < kOther; ++r) {
      if (!bad[r]) continue;
      const Stored* row = row_of<Stored>(rows, batch, head, first + r);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float weight = 0;
#pragma unroll
          for (int n = 0; n < kOther / 8; ++n)
            if (n == r / 8) weight = r % 2 ? weights[m][n][2 * half + 1] : weights[m][n][2 * half];
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
    __syncthreads();
  }
  multiply_columns<kM, kOther, kColumns>(weights, other, sums);
}

// A rectangle of queries x keys.
struct Rectangle {
  Sequence s;
  int head, key_head;
  int row, rows;
  int key, keys;
  bool whole;
};
inline bool rectangle_of(const Arguments& a, const Sequence& s, int head, int row, int most_rows,
                         int key, int most_keys, Rectangle& to) {
  to = {s,
        head,
        head / (a.heads / a.key_heads),
        row,
        least(most_rows, s.queries - row),
        key,
        least(most_keys, s.keys - key),
        false};
  if (to.rows <= 0 || to.keys <= 0) return false;
  const Cover cover =
      Structure::cover(a.structure, {s.batch, head, row, to.rows, s.position + row, key, to.keys});
  to.whole = cover == Cover::kAll && to.rows == most_rows && to.keys == most_keys;
  return cover != Cover::kNone;
}

// visit(m, n, c, place, scored, data) for the pairs that are seen; `own` numbers the rows of the
// owner's side, `other` the rest.
template <bool kOwnerIsQuery, int kM, int kOther, class Visit>
void each_seen(const Arguments& a, const Rectangle& at, const RowData* rows,
               const float (&products)[kM][kOther / 8][4], Visit visit) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kOther / 8; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int own = (warp() * kM + m) * 16 + lane() / 4 + c / 2 * 8,
                  other = n * 8 + lane() % 4 * 2 + c % 2;
        const int r = kOwnerIsQuery ? own : other, k = kOwnerIsQuery ? other : own;
        if (!at.whole && (r >= at.rows || k >= at.keys)) continue;
        const int row = at.row + r, key = at.key + k;
        const Place p{at.s.batch,
                      at.head,
                      row,
                      at.s.position + row,
                      key,
                      key,
                      row_index(a, at.s, at.head, row)};
        if (!at.whole && !Structure::allows(a.structure, p)) continue;
        const Scored scored = score_of(a, p, products[m][n][c], 1);
        if (scored.seen) visit(m, n, c, p, scored, rows[r]);
      }
    }
  }
}

template <int kM, int kColumns>
void write_rows(const Rows& rows, int batch, int head, Whole first, int count,
                const float (&sums)[kM][kColumns / 8][4], const float (&factors)[kM][2]) {
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
