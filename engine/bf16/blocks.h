// What the two implementations of bfloat16 products share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::engine {

inline constexpr size_t kBf16Rows = 32;  // rows of the left side converted at a time

// Defined in dpbf16.cc, for processors with AVX-512 and bfloat16.
// A row of `width` numbers times `scale`, rounded to bfloat16, to `pairs` words; what is past the
// width is zero.
void bf16_words(const float* row, size_t width, size_t pairs, float scale, uint32_t* out);
// n weights, their padding to kRowPadding zero, to words padded with zeros to a multiple of 16.
void bf16_weights(const float* weights, size_t n, uint32_t* out);

}  // namespace fovea::engine
