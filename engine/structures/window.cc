// i - left <= j <= i + right, i the query's position; -1 is unbounded.
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class WindowStage final : public RangeStructure {
 public:
  WindowStage(const Window& window, const Geometry& geometry)
      : geometry_(geometry), left_(reach(window.left)), right_(reach(window.right)) {}
  Cover cover(size_t batch, size_t, size_t q0, size_t nq, size_t k0, size_t nk) const override {
    const auto limit = static_cast<int64_t>(geometry_.key_limit[batch]);
    const int64_t first = geometry_.position(batch, q0),
                  last = first + static_cast<int64_t>(nq) - 1;
    const auto from = static_cast<int64_t>(k0), to = from + static_cast<int64_t>(nk);
    if (from >= limit || from > last + right_ || std::min(to, limit) <= first - left_)
      return Cover::kNone;
    return to <= limit && from >= last - left_ && to - 1 <= first + right_ ? Cover::kAll
                                                                           : Cover::kSome;
  }
  void range(size_t batch, size_t, size_t i, size_t* begin, size_t* end) const override {
    const auto limit = static_cast<int64_t>(geometry_.key_limit[batch]);
    const int64_t at = geometry_.position(batch, i);
    const int64_t last = std::clamp<int64_t>(at + right_ + 1, 0, limit);
    *begin = static_cast<size_t>(std::clamp<int64_t>(at - left_, 0, last));
    *end = static_cast<size_t>(last);
  }

 private:
  // Unbounded, and more than any distance of two positions, are the same.
  static int64_t reach(int64_t side) {
    constexpr int64_t kUnbounded = int64_t{1} << 40;
    return side < 0 ? kUnbounded : std::min(side, kUnbounded);
  }
  const Geometry& geometry_;
  const int64_t left_, right_;
};

}  // namespace

StructurePointer make_window(const Window& window, const Geometry& geometry) {
  return std::make_unique<WindowStage>(window, geometry);
}

}  // namespace fovea::engine
