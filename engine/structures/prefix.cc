// j <= i or j < length.
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class PrefixStage final : public RangeStructure {
 public:
  PrefixStage(const Prefix& prefix, const Geometry& geometry)
      : geometry_(geometry), length_(static_cast<size_t>(prefix.length)) {}
  void range(size_t batch, size_t, size_t i, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = std::min(geometry_.key_limit[batch], std::max(i + 1, length_));
  }

 private:
  const Geometry& geometry_;
  const size_t length_;
};

}  // namespace

StructurePointer make_prefix(const Prefix& prefix, const Geometry& geometry) {
  return std::make_unique<PrefixStage>(prefix, geometry);
}

}  // namespace fovea::engine
