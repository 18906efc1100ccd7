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
  if constexpr (kPanels) {
    // Pieces of rows a step apart lie evenly.
    constexpr int kPieces = kColumns / 8, kStep = kThreads / kPieces;
    static_assert(kThreads % kPieces == 0 && kStep % 8 == 0);
    const int r = threadIdx.x / kPieces, c = threadIdx.x % kPieces * 8;
    Stored* const at = to + place_in<kRows, kColumns>(r, c);
    const Stored* piece = from + r * rows.row + c;
#pragma unroll
    for (int n = 0; n < kRows; n += kStep, piece += kStep * rows.row) {
      const bool there = r + n < count;
      if (kRows % kStep == 0 || r + n < kRows) copy_16(at + n * 64, there ? piece : from, there);
    }
    return;
  }
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

// The weights of a tile as an operand, of products that come later.
template <int kOther>
FOVEA_INLINE void pack_all(const float (&weights)[kOther / 8][4], Word (&to)[kOther / 16][4]) {
#pragma unroll
  for (int k = 0; k < kOther / 16; ++k) pack_weights<kOther>(weights, k, to[k]);
}

// sums += packed weights . other rows, of panels.
template <int kOther, int kColumns, int kOtherRows>
FOVEA_INLINE void multiply_packed(const Word (&weights)[kOther / 16][4], const Stored* other,
                                  int first, float (&sums)[kColumns / 8][4]) {
  if constexpr (kGroups) {
    const Tile b = tile_at(other + first * 64, kOtherRows * 128);
    begin_group();
#pragma unroll
    for (int k = 0; k < kOther / 16; ++k) multiply_group(sums, weights[k], b + k * 128, Stored());
    end_group();
    return;
  }
  for (int k = 0; k < kOther / 16; ++k)
    for (int n = 0; n < kColumns / 16; ++n) {
      Word b[4];
      load_transposed(b, other + place_in<kOtherRows, kColumns>(first + k * 16 + lane() % 16,
                                                                n * 16 + lane() / 16 * 8));
      multiply(sums[2 * n], weights[k], b[0], b[1], Stored());
      multiply(sums[2 * n + 1], weights[k], b[2], b[3], Stored());
    }
}

// All but the last kLeft of the products asked for are there, and these numbers of them.
template <int kLeft, int kBlocks>
FOVEA_INLINE void wait_for(float (&products)[kBlocks][4]) {
  if constexpr (!kGroups) return;
  wait_group<kLeft>();
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) keep_after(products[n]);
}

// What makes these numbers is done before what comes next, where the compiler would wait for products
// first. None of them is this NaN.
FOVEA_INLINE void finish_first(Word bits) {
  if constexpr (kGroups) stop_if_any(bits == 0xff81c0deu);
}
template <int kBlocks>
FOVEA_INLINE void finish_first(const float (&x)[kBlocks][4]) {
  Word all = 0;
#pragma unroll
  for (int n = 0; n < kBlocks; ++n)
#pragma unroll
    for (int c = 0; c < 4; ++c) all |= __float_as_uint(x[n][c]);
  finish_first(all);
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

// The same of packed weights.
template <int kOther, int kColumns, class RowAt>
FOVEA_INLINE void add_bad(const Word (&weights)[kOther / 16][4], RowAt row_at, const int* bad,
                          float (&sums)[kColumns / 8][4]) {
  for (int r = 0; r < kOther; ++r) {
    if (!bad[r]) continue;
    const Stored* row = row_at(r);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Word pair = 0;  // by masks, as above
#pragma unroll
      for (int n = 0; n < kOther / 8; ++n)
        pair |= weights[n / 2][n % 2 * 2 + half] & (n == r / 8 ? ~0u : 0);
      pair = __shfl_sync(~0u, pair, (lane() & ~3) | r % 8 / 2);
      const float weight = widen(Stored{static_cast<unsigned short>(r % 2 ? pair >> 16 : pair)});
      if (weight == 0) continue;
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
        for (int c = 0; c < 2; ++c)
          sums[n][2 * half + c] += weight * widen(row[n * 8 + lane() % 4 * 2 + c]);
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

// The same of packed weights.
template <int kOther, int kColumns, int kOtherRows>
FOVEA_INLINE void multiply_seen(bool has_bad, const Word (&weights)[kOther / 16][4], Stored* other,
                                int step, const Rows& rows, int batch, int head, Whole first,
                                int* bad, float (&sums)[kColumns / 8][4]) {
  if (has_bad) {
    wait_for<0>(sums);
    zero_rows<kOther, kColumns, kOtherRows>(other, step, bad);
  }
  multiply_packed<kOther, kColumns, kOtherRows>(weights, other, step, sums);
  if (!has_bad) return;
  wait_for<0>(sums);
  add_bad<kOther, kColumns>(
      weights, [&](int r) { return row_of<Stored>(rows, batch, head, first + r); }, bad, sums);
  __syncthreads();
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
