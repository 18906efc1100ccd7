// j <= i or j < length, i the query's position; one length for all items or one for each.
#include <algorithm>

#include "engine/call/view.h"
#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class PrefixStage final : public RangeStructure {
 public:
  PrefixStage(const Prefix& prefix, const Geometry& geometry)
      : geometry_(geometry), prefix_(prefix) {}
  void range(size_t batch, size_t, size_t i, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = std::min(geometry_.key_limit[batch],
                    std::max(keys_up_to(geometry_, batch, i), length(batch)));
  }

 private:
  size_t length(size_t batch) const {
    return static_cast<size_t>(prefix_.lengths
                                   ? element<int32_t>(prefix_.lengths, static_cast<int64_t>(batch))
                                   : prefix_.length);
  }
  const Geometry& geometry_;
  const Prefix prefix_;
};

}  // namespace

StructurePointer make_prefix(const Prefix& prefix, const Geometry& geometry) {
  return std::make_unique<PrefixStage>(prefix, geometry);
}

}  // namespace fovea::engine
