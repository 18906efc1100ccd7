// One picture as a bag: windows cut out of it at equal steps.
#pragma once

#include <cstdint>
#include <vector>

#include "data/captions/box.h"
#include "data/pictures/image.h"

namespace fovea::systems::mil {

inline constexpr int64_t kMostWindows = 20000;  // of a picture

struct WindowPlan {
  int64_t side = 32, stride = 16;  // pixels
  bool positions = false;          // whether an instance knows where it is

  int64_t width() const { return 3 * side * side + (positions ? 2 : 0); }  // of an instance
};

// The windows' places, row by row. The last of a row or column ends at the picture's edge. A picture
// that is smaller than a window is one window. More than kMostWindows: InvalidArgument.
std::vector<data::Box> places(const data::Image& image, const WindowPlan& plan);
// Their pixels from -1 to 1, colour by colour, and where wanted the window's middle from -1 to 1 each way.
// Beyond the edge of a picture smaller than a window its edge is repeated.
std::vector<float> windows_of(const data::Image& image, const WindowPlan& plan);

// Of each window 1 if it holds the whole box.
std::vector<uint8_t> holds(const std::vector<data::Box>& windows,
                           const std::vector<data::Box>& boxes);

}  // namespace fovea::systems::mil
