// j <= i and (floor(j / stride) = floor(i / stride) or j mod stride >= stride - summary), i the
// query's position. Child et al. 2019.
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class FixedStage final : public StructureStage {
 public:
  FixedStage(const Fixed& fixed, const Geometry& geometry)
      : geometry_(geometry),
        stride_(fixed.stride),
        summary_(std::min(fixed.summary, fixed.stride)) {}

  Cover cover(size_t batch, size_t, size_t q0, size_t nq, size_t k0, size_t nk) const override {
    const auto limit = static_cast<int64_t>(geometry_.key_limit[batch]);
    const int64_t first = geometry_.position(batch, q0),
                  last = first + static_cast<int64_t>(nq) - 1;
    const auto k_first = static_cast<int64_t>(k0);
    if (k_first > last || k_first >= limit) return Cover::kNone;
    const int64_t k_end = std::min(k_first + static_cast<int64_t>(nk), limit);
    const bool below = k_first + static_cast<int64_t>(nk) <= limit && k_end - 1 <= first;
    if (below && (summary_ >= stride_ || k_first / stride_ == last / stride_)) return Cover::kAll;
    if (first < 0 || (k_end - 1) / stride_ >= first / stride_)
      return Cover::kSome;  // reaches a block of the diagonal
    // Earlier blocks: does [k_first, k_end) hold a summary place?
    const int64_t place = k_first % stride_;
    const bool summary =
        place >= stride_ - summary_ || place + (k_end - k_first) > stride_ - summary_;
    return summary && summary_ > 0 ? Cover::kSome : Cover::kNone;
  }
  void range(size_t batch, size_t, size_t i, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = keys_up_to(geometry_, batch, i);
  }
  bool irregular() const override { return true; }
  void mask(size_t batch, size_t, size_t i, size_t k0, size_t nk, uint8_t* keep) const override {
    const int64_t at = geometry_.position(batch, i);
    for (size_t c = 0; c < nk; ++c) keep[c] &= sees(at, static_cast<int64_t>(k0 + c));
  }
  bool allows(size_t batch, size_t, size_t i, size_t j) const override {
    return j < geometry_.key_limit[batch] &&
           sees(geometry_.position(batch, i), static_cast<int64_t>(j));
  }

 private:
  bool sees(int64_t i, int64_t j) const {
    return j <= i && (j / stride_ == i / stride_ || j % stride_ + summary_ >= stride_);
  }
  const Geometry& geometry_;
  const int64_t stride_, summary_;
};

}  // namespace

StructurePointer make_fixed(const Fixed& fixed, const Geometry& geometry) {
  return std::make_unique<FixedStage>(fixed, geometry);
}

}  // namespace fovea::engine
