// Whole size x size blocks of a coarse boolean mask.
#include <algorithm>

#include "engine/structures/structures.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

class BlocksStage final : public StructureStage {
 public:
  BlocksStage(const Blocks& blocks, const Geometry& g)
      : geometry_(g),
        size_(static_cast<size_t>(blocks.size)),
        mask_(broadcast_to(blocks.mask,
                           {static_cast<int64_t>(g.batches), static_cast<int64_t>(g.heads),
                            count(g.max_queries), count(g.max_keys)},
                           "structure.mask")) {}

  Cover cover(size_t batch, size_t head, size_t q0, size_t nq, size_t k0,
              size_t nk) const override {
    bool none = true, all = k0 + nk <= geometry_.key_limit[batch];
    const size_t end = std::min(k0 + nk, geometry_.key_limit[batch]);
    for (size_t i = q0 / size_; i * size_ < q0 + nq && (none || all); ++i) {
      for (size_t j = k0 / size_; j * size_ < end; ++j)
        (block(batch, head, i, j) ? none : all) = false;
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
    for (size_t c = 0; c < nk;) {
      const size_t j = (k0 + c) / size_, end = std::min(nk, (j + 1) * size_ - k0);
      if (!block(batch, head, i / size_, j)) std::fill(keep + c, keep + end, uint8_t{0});
      c = end;
    }
  }
  bool allows(size_t batch, size_t head, size_t i, size_t j) const override {
    return j < geometry_.key_limit[batch] && block(batch, head, i / size_, j / size_);
  }

 private:
  int64_t count(size_t n) const { return static_cast<int64_t>((n + size_ - 1) / size_); }
  bool block(size_t batch, size_t head, size_t i, size_t j) const {
    return element<uint8_t>(mask_, static_cast<int64_t>(batch), static_cast<int64_t>(head),
                            static_cast<int64_t>(i), static_cast<int64_t>(j)) != 0;
  }
  const Geometry& geometry_;
  const size_t size_;
  const View mask_;
};

}  // namespace

StructurePointer make_blocks(const Blocks& blocks, const Geometry& geometry) {
  return std::make_unique<BlocksStage>(blocks, geometry);
}

}  // namespace fovea::engine
