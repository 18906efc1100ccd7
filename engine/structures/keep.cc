// The pairs where a boolean mask is true.
#include <algorithm>
#include <cstring>

#include "engine/structures/structures.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

class KeepStage final : public StructureStage {
 public:
  KeepStage(const Keep& keep, const Geometry& g)
      : geometry_(g),
        mask_(broadcast_to(keep.mask,
                           {static_cast<int64_t>(g.batches), static_cast<int64_t>(g.heads),
                            static_cast<int64_t>(g.max_queries), static_cast<int64_t>(g.max_keys)},
                           "structure.mask")) {}

  Cover cover(size_t batch, size_t head, size_t q0, size_t nq, size_t k0,
              size_t nk) const override {
    bool none = true, all = k0 + nk <= geometry_.key_limit[batch];
    const size_t end = std::min(k0 + nk, geometry_.key_limit[batch]);
    for (size_t i = q0; i < q0 + nq && (none || all); ++i) {
      for (size_t j = k0; j < end; ++j) (at(batch, head, i, j) ? none : all) = false;
    }
    return none ? Cover::kNone : all ? Cover::kAll : Cover::kSome;
  }
  void range(size_t batch, size_t, size_t, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = geometry_.key_limit[batch];
  }
  bool irregular() const override { return true; }
  void mask(size_t batch, size_t head, size_t i, size_t k0, size_t nk,
            uint8_t* keep) const override {
    for (size_t c = 0; c < nk; ++c) keep[c] &= at(batch, head, i, k0 + c) ? 1 : 0;
  }
  bool allows(size_t batch, size_t head, size_t i, size_t j) const override {
    return j < geometry_.key_limit[batch] && at(batch, head, i, j);
  }

 private:
  bool at(size_t batch, size_t head, size_t i, size_t j) const {
    return element<uint8_t>(mask_, static_cast<int64_t>(batch), static_cast<int64_t>(head),
                            static_cast<int64_t>(i), static_cast<int64_t>(j)) != 0;
  }
  const Geometry& geometry_;
  const View mask_;
};

}  // namespace

StructurePointer make_keep(const Keep& keep, const Geometry& geometry) {
  return std::make_unique<KeepStage>(keep, geometry);
}

}  // namespace fovea::engine
