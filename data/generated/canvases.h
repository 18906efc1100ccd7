// Canvases with digits on them: each digit is known with its place, so that what a model names, and
// where it looks when it does, can be judged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/captions/box.h"
#include "data/digits.h"
#include "data/split.h"

namespace fovea::data {

struct Canvas {
  std::vector<uint8_t> pixels;  // [side, side], grey
  std::vector<int64_t> digits;  // distinct; for captions in the order in which they are told
  std::vector<Box> boxes;       // of each digit's ink, as shares of the side
};

struct CanvasPlan {
  int64_t side = 42;            // pixels; at least a digit's
  int64_t least = 2, most = 3;  // digits on a canvas, at most 4
  PartSizes parts = kGenerated;
  uint64_t seed = 1;
};

struct Canvases {
  int64_t side = 0;
  std::vector<Canvas> items;
  Splits splits;
};

// Digits of one canvas overlap by at most this many pixels.
inline constexpr int64_t kMostOverlap = 2;

// Digits of `from.test` make test canvases alone; of the training digits, a tenth is for validation
// canvases alone.
//
// For captions: any two digits of a canvas are clearly above each other or beside each other.
Canvases caption_canvases(const CanvasPlan& plan, const DigitSets& from);
// For sets: digits d and d + 5 come together more often than others.
Canvases set_canvases(const CanvasPlan& plan, const DigitSets& from);

// "a seven above a two left of a one": the upper one of two first, or the left one of two that stand
// side by side.
std::string caption_of(const Canvas& canvas);
const char* digit_name(int64_t digit);  // "zero" to "nine"

// The pixels three times, as pictures in colour have them: [side, side, 3].
std::vector<uint8_t> in_colour(const Canvas& canvas);

}  // namespace fovea::data
