// j <= i (top left) or j <= i + S - L (bottom right).
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class CausalStage final : public RangeStructure {
 public:
  CausalStage(const Causal& causal, const Geometry& geometry)
      : geometry_(geometry), bottom_right_(causal.alignment == choice::Alignment::kBottomRight) {}

  Cover cover(size_t batch, size_t, size_t q0, size_t nq, size_t k0, size_t nk) const override {
    const int64_t first = static_cast<int64_t>(q0) + shift(batch),
                  last = first + static_cast<int64_t>(nq) - 1;
    const int64_t limit = static_cast<int64_t>(geometry_.key_limit[batch]);
    const int64_t k_first = static_cast<int64_t>(k0),
                  k_last = k_first + static_cast<int64_t>(nk) - 1;
    if (k_first > last || k_first >= limit) return Cover::kNone;
    return k_last <= first && k_last < limit ? Cover::kAll : Cover::kSome;
  }
  void range(size_t batch, size_t, size_t i, size_t* begin, size_t* end) const override {
    const int64_t limit = static_cast<int64_t>(geometry_.key_limit[batch]);
    *begin = 0;
    *end = static_cast<size_t>(
        std::clamp<int64_t>(static_cast<int64_t>(i) + shift(batch) + 1, 0, limit));
  }

 private:
  int64_t shift(size_t batch) const {
    return bottom_right_ ? static_cast<int64_t>(geometry_.key_limit[batch]) -
                               static_cast<int64_t>(geometry_.query_count[batch])
                         : 0;
  }
  const Geometry& geometry_;
  const bool bottom_right_;
};

}  // namespace

StructurePointer make_causal(const Causal& causal, const Geometry& geometry) {
  return std::make_unique<CausalStage>(causal, geometry);
}

}  // namespace fovea::engine
