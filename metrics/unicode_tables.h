// Tables written by make_unicode_tables.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::metrics {

struct Range {
  char32_t first, last;
};
// first, first + step, ... last map to themselves + delta.
struct LowerRun {
  char32_t first, last;
  int32_t step, delta;
};

extern const Range kPunctuation[], kSymbol[], kNumber[];
extern const size_t kPunctuationSize, kSymbolSize, kNumberSize;
extern const LowerRun kLower[];
extern const size_t kLowerSize;

}  // namespace fovea::metrics
