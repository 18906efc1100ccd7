// AVX-512's dpbf16: each lane adds two products of bfloat16 numbers to a float32 sum. Also the
// packing, which AMX shares.
#include <algorithm>

#include "engine/bf16/blocks.h"
#include "engine/bf16/products.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define FOVEA_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace fovea::engine {
namespace {

constexpr size_t kN = 16;

// kR rows of a against kV vectors of b: c[r][v] = sum over p of a[r][p] b[p][v], word by word.
struct Block {
  const uint32_t* a;
  size_t a_stride;
  const uint32_t* b;
  size_t b_step, b_vector;  // words from one pair to the next, from one vector to the next
  size_t pairs;
  float* c;
  size_t c_stride;
  Into into;
  const float* carry;
  __mmask16 last;  // lanes of the last vector
};

template <size_t kR, size_t kV>
FOVEA_BF16 void multiply(const Block& m) {
  __m512 sum[kR][kV];
#pragma GCC unroll 8
  for (size_t r = 0; r < kR; ++r)
#pragma GCC unroll 8
    for (size_t v = 0; v < kV; ++v) sum[r][v] = _mm512_setzero_ps();
  const uint32_t* b = m.b;
  for (size_t p = 0; p < m.pairs; ++p, b += m.b_step) {
    __m512i right[kV];
#pragma GCC unroll 8
    for (size_t v = 0; v < kV; ++v) right[v] = _mm512_loadu_si512(b + v * m.b_vector);
#pragma GCC unroll 8
    for (size_t r = 0; r < kR; ++r) {
      const __m512i left = _mm512_set1_epi32(static_cast<int>(m.a[r * m.a_stride + p]));
#pragma GCC unroll 8
      for (size_t v = 0; v < kV; ++v)
        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)left, (__m512bh)right[v]);
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < kR; ++r) {
    float* c = m.c + r * m.c_stride;
#pragma GCC unroll 8
    for (size_t v = 0; v < kV; ++v) {
      const __mmask16 lanes = v + 1 == kV ? m.last : static_cast<__mmask16>(0xffff);
      __m512 x = sum[r][v];
      if (m.into == Into::kAdd) x = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, c + v * kN), x);
      if (m.into == Into::kCarry)
        x = _mm512_fmadd_ps(_mm512_set1_ps(m.carry[r]), _mm512_maskz_loadu_ps(lanes, c + v * kN),
                            x);
      _mm512_mask_storeu_ps(c + v * kN, lanes, x);
    }
  }
}

template <size_t kR>
void multiply_rows(size_t vectors, const Block& m) {
  if (vectors == 4) return multiply<kR, 4>(m);
  if (vectors == 3) return multiply<kR, 3>(m);
  if (vectors == 2) return multiply<kR, 2>(m);
  multiply<kR, 1>(m);
}
void multiply_any(size_t rows, size_t vectors, const Block& m) {
  if (rows == 6) return multiply_rows<6>(vectors, m);
  if (rows == 4) return multiply_rows<4>(vectors, m);
  multiply_rows<1>(vectors, m);
}
size_t rows_of(size_t left) { return left >= 6 ? 6 : left >= 4 ? 4 : 1; }

FOVEA_BF16 void pack_keys(const float* rows, size_t stride, size_t n, size_t width, float scale,
                          uint32_t* panel) {
  const size_t pairs = bf16_pairs(width);
  alignas(64) uint32_t words[kN * bf16_pairs(kBf16Width)];
  const __m512i place =
      _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                         _mm512_set1_epi32(static_cast<int>(pairs)));
  for (size_t first = 0; first < kPanelKeys; first += kN, panel += pairs * kN) {
    for (size_t i = 0; i < kN; ++i) {
      if (first + i < n)
        bf16_words(rows + (first + i) * stride, width, pairs, scale, words + i * pairs);
      else
        std::fill_n(words + i * pairs, pairs, 0u);
    }
    for (size_t p = 0; p < pairs; ++p)
      _mm512_storeu_si512(panel + p * kN, _mm512_i32gather_epi32(place, words + p, 4));
  }
}

FOVEA_BF16 void pack_values(const float* rows, size_t stride, size_t n, size_t width,
                            uint32_t* panel) {
  const size_t columns = bf16_columns(width);
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (size_t key = 0; key < kPanelKeys; key += 2, panel += columns) {
    for (size_t c = 0; c < columns; c += kN) {
      const size_t left = width - c;
      const __mmask16 lanes =
          left >= kN ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1u << left) - 1);
      const __mmask16 even = key < n ? lanes : 0, odd = key + 1 < n ? lanes : 0;
      const __m512i a = _mm512_maskz_loadu_epi32(even, rows + key * stride + c);
      const __m512i b = _mm512_maskz_loadu_epi32(odd, rows + (key + 1) * stride + c);
      _mm512_storeu_si512(panel + c,
                          _mm512_or_si512(_mm512_srli_epi32(a, 16), _mm512_and_si512(b, high)));
    }
  }
}

void score(const Tile<float>& tile, size_t width, const uint32_t* panels) {
  const size_t pairs = bf16_pairs(width);
  alignas(64) uint32_t left[kBf16Rows * bf16_pairs(kBf16Width)];
  Block block{.a = left,
              .a_stride = pairs,
              .b = nullptr,
              .b_step = kN,
              .b_vector = pairs * kN,
              .pairs = pairs,
              .c = nullptr,
              .c_stride = tile.s_stride,
              .into = Into::kStore,
              .carry = nullptr,
              .last = 0xffff};
  for (size_t row0 = 0; row0 < tile.nq; row0 += kBf16Rows) {
    const size_t rows = std::min(kBf16Rows, tile.nq - row0);
    for (size_t r = 0; r < rows; ++r)
      bf16_words(tile.q + (row0 + r) * tile.q_stride, width, pairs, 1.0f, left + r * pairs);
    for (size_t column = 0; column < tile.nk; column += kPanelKeys) {
      for (size_t r = 0, n; r < rows; r += n) {
        n = rows_of(rows - r);
        size_t begin, end;
        reach(tile, row0 + r, n, &begin, &end);
        if (end <= column || begin >= column + kPanelKeys) continue;
        block.a = left + r * pairs;
        block.b = panels + column * pairs;
        block.c = tile.s + (row0 + r) * tile.s_stride + column;
        multiply_any(n, (std::min(end - column, kPanelKeys) + kN - 1) / kN, block);
      }
    }
  }
}

void aggregate(const Tile<float>& tile, const uint32_t* panels, Into into) {
  const size_t columns = bf16_columns(tile.value_width), pairs = (tile.nk + 31) / 32 * 16;
  alignas(64) uint32_t left[kBf16Rows * kMaxKeys / 2];
  for (size_t row0 = 0; row0 < tile.nq; row0 += kBf16Rows) {
    const size_t rows = std::min(kBf16Rows, tile.nq - row0);
    for (size_t r = 0; r < rows; ++r)
      bf16_weights(tile.s + (row0 + r) * tile.s_stride, tile.nk, left + r * pairs);
    for (size_t column = 0; column < columns; column += 4 * kN) {
      const size_t vectors = std::min<size_t>(4, (columns - column) / kN),
                   used = tile.value_width - column;
      Block block{.a = nullptr,
                  .a_stride = pairs,
                  .b = nullptr,
                  .b_step = columns,
                  .b_vector = kN,
                  .pairs = 0,
                  .c = nullptr,
                  .c_stride = tile.o_stride,
                  .into = into,
                  .carry = nullptr,
                  .last = 0xffff};
      if (used < vectors * kN) block.last = static_cast<__mmask16>((1u << used % kN) - 1);
      for (size_t r = 0, n; r < rows; r += n) {
        n = rows_of(rows - r);
        size_t begin, end;
        reach(tile, row0 + r, n, &begin, &end);
        begin /= 2;
        block.a = left + r * pairs + begin;
        block.b = panels + begin * columns + column;
        block.pairs = std::max(begin, (end + 1) / 2) - begin;
        block.c = tile.o + (row0 + r) * tile.o_stride + column;
        block.carry = tile.rows.carry + row0 + r;
        multiply_any(n, vectors, block);
      }
    }
  }
}

}  // namespace

FOVEA_BF16 void bf16_words(const float* row, size_t width, size_t pairs, float scale,
                           uint32_t* out) {
  const __m512 factor = _mm512_set1_ps(scale);
  for (size_t e = 0; e < 2 * pairs; e += 2 * kN) {
    const auto load = [&](size_t at) FOVEA_BF16 {
      const size_t left = at < width ? width - at : 0;
      const __mmask16 lanes =
          left >= kN ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1u << left) - 1);
      return _mm512_mul_ps(factor, _mm512_maskz_loadu_ps(lanes, row + at));
    };
    const __m512 low = load(e), high = load(e + kN);
    _mm512_storeu_si512(out + e / 2, (__m512i)_mm512_cvtne2ps_pbh(high, low));
  }
}

FOVEA_BF16 void bf16_weights(const float* weights, size_t n, uint32_t* out) {
  // Rows are padded to whole vectors with zeros, not to two of them.
  for (size_t c = 0; c < n; c += 2 * kN) {
    const __m512 low = _mm512_loadu_ps(weights + c),
                 high = c + kN < n ? _mm512_loadu_ps(weights + c + kN) : _mm512_setzero_ps();
    _mm512_storeu_si512(out + c / 2, (__m512i)_mm512_cvtne2ps_pbh(high, low));
  }
}

const Bf16Products* dpbf16_products() {
  static constexpr Bf16Products kProducts{"dpbf16", pack_keys, pack_values, score, aggregate};
  static const bool present =
      __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return present ? &kProducts : nullptr;
}

}  // namespace fovea::engine

#else

namespace fovea::engine {
const Bf16Products* dpbf16_products() { return nullptr; }
}  // namespace fovea::engine

#endif
