// j <= i and (i - j <= stride or (i - j) mod stride = 0). Child et al. 2019.
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class StridedStage final : public StructureStage {
 public:
  StridedStage(const Strided& strided, const Geometry& geometry)
      : geometry_(geometry), stride_(static_cast<size_t>(strided.stride)) {}

  Cover cover(size_t batch, size_t, size_t q0, size_t nq, size_t k0, size_t nk) const override {
    const size_t limit = geometry_.key_limit[batch], last = q0 + nq - 1;
    if (k0 > last || k0 >= limit) return Cover::kNone;
    const size_t end = std::min(k0 + nk, limit);
    if (k0 + nk <= limit && k0 + nk - 1 <= q0 && (stride_ == 1 || last - k0 <= stride_))
      return Cover::kAll;
    // Below the band, differences run over [q0 - (end - 1), last - k0]; is one of them a multiple?
    const size_t low = q0 >= end - 1 ? q0 - (end - 1) : 0, high = last - k0;
    if (low <= stride_) return Cover::kSome;
    return high / stride_ * stride_ >= low ? Cover::kSome : Cover::kNone;
  }
  void range(size_t batch, size_t, size_t i, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = std::min(i + 1, geometry_.key_limit[batch]);
  }
  bool irregular() const override { return stride_ > 1; }
  void mask(size_t, size_t, size_t i, size_t k0, size_t nk, uint8_t* keep) const override {
    for (size_t c = 0; c < nk; ++c) keep[c] &= sees(i, k0 + c);
  }
  bool allows(size_t batch, size_t, size_t i, size_t j) const override {
    return j < geometry_.key_limit[batch] && sees(i, j);
  }

 private:
  bool sees(size_t i, size_t j) const {
    return j <= i && (i - j <= stride_ || (i - j) % stride_ == 0);
  }
  const Geometry& geometry_;
  const size_t stride_;
};

}  // namespace

StructurePointer make_strided(const Strided& strided, const Geometry& geometry) {
  return std::make_unique<StridedStage>(strided, geometry);
}

}  // namespace fovea::engine
