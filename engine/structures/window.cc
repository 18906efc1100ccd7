// i - left <= j <= i + right; -1 is unbounded.
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class WindowStage final : public RangeStructure {
 public:
  WindowStage(const Window& window, const Geometry& geometry)
      : geometry_(geometry), window_(window) {}
  void range(size_t batch, size_t, size_t i, size_t* begin, size_t* end) const override {
    const int64_t limit = static_cast<int64_t>(geometry_.key_limit[batch]),
                  at = static_cast<int64_t>(i);
    const int64_t first = window_.left < 0 || window_.left > at ? 0 : at - window_.left;
    // A right side past the limit is the same as none; comparing first keeps at + right + 1 from
    // overflowing.
    const int64_t last = window_.right < 0 || window_.right >= limit
                             ? limit
                             : std::min(limit, at + window_.right + 1);
    *begin = static_cast<size_t>(std::min(first, last));
    *end = static_cast<size_t>(last);
  }

 private:
  const Geometry& geometry_;
  const Window window_;
};

}  // namespace

StructurePointer make_window(const Window& window, const Geometry& geometry) {
  return std::make_unique<WindowStage>(window, geometry);
}

}  // namespace fovea::engine
