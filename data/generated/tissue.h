// Pictures like slices of tissue: many small nuclei, and in some of them a few cells of another kind,
// whose places are known.
#pragma once

#include <cstdint>
#include <vector>

#include "data/captions/box.h"
#include "data/pictures/image.h"

namespace fovea::data {

struct Slide {
  Image image;             // in three colours
  bool positive = false;   // whether it has cells of the other kind
  std::vector<Box> cells;  // where they are
};

inline constexpr int64_t kSlideSide = 96;  // pixels

// Positive and negative ones in turn. A cell of the other kind is larger, with a pale ring and a dark
// kernel; its colours occur in every slide.
std::vector<Slide> generate_tissue(int64_t count, uint64_t seed);

}  // namespace fovea::data
