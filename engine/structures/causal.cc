// j <= i, i the query's position. Top left and bottom right differ in the offset alone, which the
// geometry has resolved.
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class CausalStage final : public RangeStructure {
 public:
  explicit CausalStage(const Geometry& geometry) : geometry_(geometry) {}

  Cover cover(size_t batch, size_t, size_t q0, size_t nq, size_t k0, size_t nk) const override {
    const int64_t first = geometry_.position(batch, q0),
                  last = first + static_cast<int64_t>(nq) - 1;
    const int64_t limit = static_cast<int64_t>(geometry_.key_limit[batch]);
    const int64_t k_first = static_cast<int64_t>(k0),
                  k_last = k_first + static_cast<int64_t>(nk) - 1;
    if (k_first > last || k_first >= limit) return Cover::kNone;
    return k_last <= first && k_last < limit ? Cover::kAll : Cover::kSome;
  }
  void range(size_t batch, size_t, size_t i, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = keys_up_to(geometry_, batch, i);
  }

 private:
  const Geometry& geometry_;
};

}  // namespace

StructurePointer make_causal(const Geometry& geometry) {
  return std::make_unique<CausalStage>(geometry);
}

}  // namespace fovea::engine
