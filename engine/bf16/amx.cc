// AMX: eight tile registers of 16 rows x 64 bytes; one instruction multiplies 16 x 32 by 32 x 16
// bfloat16 numbers onto 16 x 16 float32 sums. Blocks of 32 x 32 results use all eight: four of
// sums, two of each side.
#include <algorithm>

#include "engine/bf16/blocks.h"
#include "engine/bf16/products.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOVEA_AMX __attribute__((target("avx512f,amx-tile,amx-bf16")))

namespace fovea::engine {
namespace {

constexpr size_t kSide = 16;
// Below this many rows most of a tile would be padding.
constexpr size_t kFewestRows = 8;

struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t column_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr Configuration kConfiguration;

// The intrinsics do not tell the compiler what memory they touch.
inline void order_memory() { asm volatile("" ::: "memory"); }

class Tiles {
 public:
  FOVEA_AMX Tiles() { _tile_loadconfig(&kConfiguration); }
  FOVEA_AMX ~Tiles() { _tile_release(); }
};

struct Block {
  const uint32_t* a;
  size_t a_stride;
  const uint32_t* b;
  size_t b_stride, b_depth,
      b_column;  // words between rows of pairs, tiles along the depth, tiles along the columns
  size_t depth;  // in tiles
  float* c;
  size_t c_stride;
};

// c = a b for `rows` x `columns` tiles, one or two each way.
FOVEA_AMX void multiply(size_t rows, size_t columns, const Block& m) {
  const size_t a_bytes = m.a_stride * 4, b_bytes = m.b_stride * 4, c_bytes = m.c_stride * 4;
  order_memory();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const uint32_t *a = m.a, *b = m.b;
  for (size_t d = 0; d < m.depth; ++d, a += kSide, b += m.b_depth) {
    _tile_loadd(4, a, a_bytes);
    _tile_loadd(6, b, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if (columns == 2) {
      _tile_loadd(7, b + m.b_column, b_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (rows == 1) continue;
    _tile_loadd(5, a + kSide * m.a_stride, a_bytes);
    _tile_dpbf16ps(2, 5, 6);
    if (columns == 2) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, m.c, c_bytes);
  if (columns == 2) _tile_stored(1, m.c + kSide, c_bytes);
  if (rows == 2) {
    _tile_stored(2, m.c + kSide * m.c_stride, c_bytes);
    if (columns == 2) _tile_stored(3, m.c + kSide * m.c_stride + kSide, c_bytes);
  }
  order_memory();
}

void score(const Tile<float>& tile, size_t width, const uint32_t* panels) {
  if (tile.nq < kFewestRows) return dpbf16_products()->score(tile, width, panels);
  const size_t pairs = bf16_pairs(width);
  alignas(64) uint32_t left[kBf16Rows * bf16_pairs(kBf16Width)];
  alignas(64) float sums[4 * kSide * kSide];
  const Tiles tiles;
  Block block{.a = left,
              .a_stride = pairs,
              .b = nullptr,
              .b_stride = kSide,
              .b_depth = kSide * kSide,
              .b_column = pairs * kSide,
              .depth = pairs / kSide,
              .c = nullptr,
              .c_stride = tile.s_stride};
  for (size_t row0 = 0; row0 < tile.nq; row0 += kBf16Rows) {
    const size_t rows = std::min(kBf16Rows, tile.nq - row0), row_tiles = (rows + kSide - 1) / kSide;
    for (size_t r = 0; r < rows; ++r)
      bf16_words(tile.q + (row0 + r) * tile.q_stride, width, pairs, 1.0f, left + r * pairs);
    std::fill(left + rows * pairs, left + row_tiles * kSide * pairs, 0u);
    size_t begin, end;
    reach(tile, row0, rows, &begin, &end);
    for (size_t column = begin / kSide * kSide; column < end; column += 2 * kSide) {
      const size_t column_tiles = end - column > kSide ? 2 : 1;
      float* to = tile.s + row0 * tile.s_stride + column;
      block.b = panels + column * pairs;
      const bool whole = rows == row_tiles * kSide;
      block.c = whole ? to : sums;
      block.c_stride = whole ? tile.s_stride : 2 * kSide;
      multiply(row_tiles, column_tiles, block);
      if (whole) continue;
      for (size_t r = 0; r < rows; ++r)
        std::copy_n(sums + r * 2 * kSide, column_tiles * kSide, to + r * tile.s_stride);
    }
  }
}

FOVEA_AMX void aggregate(const Tile<float>& tile, const uint32_t* panels, Into into) {
  if (tile.nq < kFewestRows) return dpbf16_products()->aggregate(tile, panels, into);
  const size_t columns = bf16_columns(tile.value_width), pairs = (tile.nk + 31) / 32 * 16;
  alignas(64) uint32_t left[kBf16Rows * kMaxKeys / 2];
  alignas(64) float sums[4 * kSide * kSide];
  const Tiles tiles;
  Block block{.a = nullptr,
              .a_stride = pairs,
              .b = nullptr,
              .b_stride = columns,
              .b_depth = kSide * columns,
              .b_column = kSide,
              .depth = 0,
              .c = sums,
              .c_stride = 2 * kSide};
  for (size_t row0 = 0; row0 < tile.nq; row0 += kBf16Rows) {
    const size_t rows = std::min(kBf16Rows, tile.nq - row0), row_tiles = (rows + kSide - 1) / kSide;
    for (size_t r = 0; r < rows; ++r)
      bf16_weights(tile.s + (row0 + r) * tile.s_stride, tile.nk, left + r * pairs);
    std::fill(left + rows * pairs, left + row_tiles * kSide * pairs, 0u);
    size_t begin, end;
    reach(tile, row0, rows, &begin, &end);
    begin = begin / 32 * kSide;  // in pairs, whole tiles
    block.a = left + begin;
    block.depth = (std::max((end + 1) / 2, begin) - begin + kSide - 1) / kSide;
    for (size_t column = 0; column < columns; column += 2 * kSide) {
      block.b = panels + begin * columns + column;
      multiply(row_tiles, columns - column > kSide ? 2 : 1, block);
      const size_t n = std::min(2 * kSide, tile.value_width - column);
      for (size_t r = 0; r < rows; ++r) {
        float* to = tile.o + (row0 + r) * tile.o_stride + column;
        const float keep = into == Into::kStore ? 0
                           : into == Into::kAdd ? 1
                                                : tile.rows.carry[row0 + r];
        const float* sum = sums + r * 2 * kSide;
        if (into == Into::kStore)
          std::copy_n(sum, n, to);
        else
          for (size_t c = 0; c < n; ++c) to[c] = keep * to[c] + sum[c];
      }
    }
  }
}

// Whether the processor has AMX, and the system permits the use of tile registers.
bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!dpbf16_products() || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const bool tiles = (d >> 24 & 1) != 0, bf16 = (d >> 22 & 1) != 0;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return tiles && bf16 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

const Bf16Products* amx_products() {
  static const bool present = has_amx();
  static const Bf16Products products =
      present ? Bf16Products{"AMX", dpbf16_products()->pack_keys, dpbf16_products()->pack_values,
                             score, aggregate}
              : Bf16Products{};
  return present ? &products : nullptr;
}

}  // namespace fovea::engine

#else

namespace fovea::engine {
const Bf16Products* amx_products() { return nullptr; }
}  // namespace fovea::engine

#endif
