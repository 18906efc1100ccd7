// Every key, up to the batch item's length.
#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class DenseStage final : public RangeStructure {
 public:
  explicit DenseStage(const Geometry& geometry) : geometry_(geometry) {}
  Cover cover(size_t batch, size_t, size_t, size_t, size_t k0, size_t nk) const override {
    const size_t limit = geometry_.key_limit[batch];
    return k0 >= limit ? Cover::kNone : k0 + nk <= limit ? Cover::kAll : Cover::kSome;
  }
  void range(size_t batch, size_t, size_t, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = geometry_.key_limit[batch];
  }

 private:
  const Geometry& geometry_;
};

}  // namespace

StructurePointer make_dense(const Geometry& geometry) {
  return std::make_unique<DenseStage>(geometry);
}

}  // namespace fovea::engine
