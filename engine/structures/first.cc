// j < count.
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class FirstStage final : public RangeStructure {
 public:
  FirstStage(const First& first, const Geometry& geometry)
      : geometry_(geometry), count_(static_cast<size_t>(first.count)) {}
  Cover cover(size_t batch, size_t, size_t, size_t, size_t k0, size_t nk) const override {
    const size_t end = end_of(batch);
    return k0 >= end ? Cover::kNone : k0 + nk <= end ? Cover::kAll : Cover::kSome;
  }
  void range(size_t batch, size_t, size_t, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = end_of(batch);
  }

 private:
  size_t end_of(size_t batch) const { return std::min(count_, geometry_.key_limit[batch]); }
  const Geometry& geometry_;
  const size_t count_;
};

}  // namespace

StructurePointer make_first(const First& first, const Geometry& geometry) {
  return std::make_unique<FirstStage>(first, geometry);
}

}  // namespace fovea::engine
