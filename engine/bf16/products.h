// Products of bfloat16 rows on processors with instructions for them: `dpbf16` of AVX-512, and the
// tiles of AMX. Sums are float32.
//
// A word holds the two bfloat16 numbers that are multiplied together: neighbours in a row for
// scores, the same column of two neighbouring keys for sums of values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/loops/product.h"
#include "engine/tile.h"

namespace fovea::engine {

inline constexpr size_t kBf16Width =
    512;  // the widest rows served: a block of them lives on the stack

// Words of a row of scores' operands: depth padded with zeros to whole tiles of 32.
constexpr size_t bf16_pairs(size_t width) { return (width + 31) / 32 * 16; }
// Columns of values, padded to whole tiles.
constexpr size_t bf16_columns(size_t width) { return (width + 15) / 16 * 16; }

struct Bf16Products {
  const char* name;
  // kPanelKeys rows that hold bfloat16 numbers, times a power of two, to [4][bf16_pairs][16 keys];
  // missing rows are zeros.
  void (*pack_keys)(const float* rows, size_t stride, size_t n, size_t width, float scale,
                    uint32_t* panel);
  // The same rows as values, to [kPanelKeys / 2][bf16_columns].
  void (*pack_values)(const float* rows, size_t stride, size_t n, size_t width, uint32_t* panel);
  // tile.s = tile.q . keys, as Products::score; the queries hold bfloat16 numbers.
  void (*score)(const Tile<float>& tile, size_t width, const uint32_t* panels);
  // tile.o (into) = tile.s . values, the weights rounded to bfloat16, the values finite.
  void (*aggregate)(const Tile<float>& tile, const uint32_t* panels, Into into);
};

// The one that is faster on this processor than float32 arithmetic; null if none is, or if the
// engine is held to a SIMD target without it.
const Bf16Products* bf16_products();

// By instruction; null if the processor does not have it.
const Bf16Products* dpbf16_products();
const Bf16Products* amx_products();

}  // namespace fovea::engine
