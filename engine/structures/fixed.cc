// j <= i and (floor(j / stride) = floor(i / stride) or j mod stride >= stride - summary). Child et
// al. 2019.
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class FixedStage final : public StructureStage {
 public:
  FixedStage(const Fixed& fixed, const Geometry& geometry)
      : geometry_(geometry),
        stride_(static_cast<size_t>(fixed.stride)),
        summary_(static_cast<size_t>(fixed.summary)) {}

  Cover cover(size_t batch, size_t, size_t q0, size_t nq, size_t k0, size_t nk) const override {
    const size_t limit = geometry_.key_limit[batch], last = q0 + nq - 1;
    if (k0 > last || k0 >= limit) return Cover::kNone;
    const size_t end = std::min(k0 + nk, limit);
    const bool below = k0 + nk <= limit && k0 + nk - 1 <= q0;
    if (below && (summary_ >= stride_ || (k0 / stride_ == last / stride_))) return Cover::kAll;
    if ((end - 1) / stride_ >= q0 / stride_)
      return Cover::kSome;  // reaches a block of the diagonal
    // Earlier blocks: does [k0, end) hold a summary place?
    const size_t place = k0 % stride_;
    const bool summary = place >= stride_ - std::min(summary_, stride_) ||
                         place + (end - k0) > stride_ - std::min(summary_, stride_);
    return summary && summary_ > 0 ? Cover::kSome : Cover::kNone;
  }
  void range(size_t batch, size_t, size_t i, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = std::min(i + 1, geometry_.key_limit[batch]);
  }
  bool irregular() const override { return true; }
  void mask(size_t, size_t, size_t i, size_t k0, size_t nk, uint8_t* keep) const override {
    for (size_t c = 0; c < nk; ++c) keep[c] &= sees(i, k0 + c);
  }
  bool allows(size_t batch, size_t, size_t i, size_t j) const override {
    return j < geometry_.key_limit[batch] && sees(i, j);
  }

 private:
  bool sees(size_t i, size_t j) const {
    return j <= i && (j / stride_ == i / stride_ || j % stride_ + summary_ >= stride_);
  }
  const Geometry& geometry_;
  const size_t stride_, summary_;
};

}  // namespace

StructurePointer make_fixed(const Fixed& fixed, const Geometry& geometry) {
  return std::make_unique<FixedStage>(fixed, geometry);
}

}  // namespace fovea::engine
