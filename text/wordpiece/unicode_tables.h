// Tables written by make_unicode_tables.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::text::unicode {

struct Range {
  char32_t first, last;
};
struct CombiningRun {
  char32_t first, last;
  int32_t order;  // canonical combining class
};
// first, first + step, ... last map to themselves + delta.
struct LowerRun {
  char32_t first, last;
  int32_t step, delta;
};
// Full canonical decomposition: kParts[at, at + count).
struct Decomposition {
  char32_t of;
  uint16_t at, count;
};

extern const Range kRemoved[], kBlank[], kMark[], kPunctuation[], kChinese[];
extern const size_t kRemovedSize, kBlankSize, kMarkSize, kPunctuationSize, kChineseSize;
extern const CombiningRun kCombining[];
extern const size_t kCombiningSize;
extern const LowerRun kLower[];
extern const size_t kLowerSize;
extern const Decomposition kDecompositions[];
extern const size_t kDecompositionsSize;
extern const char32_t kParts[];
extern const size_t kPartsSize;

}  // namespace fovea::text::unicode
