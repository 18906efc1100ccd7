// j <= i and (i - j <= stride or (i - j) mod stride = 0), i the query's position. Child et al. 2019.
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class StridedStage final : public StructureStage {
 public:
  StridedStage(const Strided& strided, const Geometry& geometry)
      : geometry_(geometry), stride_(strided.stride) {}

  Cover cover(size_t batch, size_t, size_t q0, size_t nq, size_t k0, size_t nk) const override {
    const auto limit = static_cast<int64_t>(geometry_.key_limit[batch]);
    const int64_t first = geometry_.position(batch, q0),
                  last = first + static_cast<int64_t>(nq) - 1;
    const auto k_first = static_cast<int64_t>(k0), k_end = k_first + static_cast<int64_t>(nk);
    if (k_first > last || k_first >= limit) return Cover::kNone;
    if (k_end <= limit && k_end - 1 <= first && (stride_ == 1 || last - k_first <= stride_))
      return Cover::kAll;
    // Below the band, differences run over [first - (end - 1), last - k_first]; is one of them a
    // multiple?
    const int64_t low = first - (std::min(k_end, limit) - 1), high = last - k_first;
    if (low <= stride_) return Cover::kSome;
    return high / stride_ * stride_ >= low ? Cover::kSome : Cover::kNone;
  }
  void range(size_t batch, size_t, size_t i, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = keys_up_to(geometry_, batch, i);
  }
  bool irregular() const override { return stride_ > 1; }
  void mask(size_t batch, size_t, size_t i, size_t k0, size_t nk, uint8_t* keep) const override {
    const int64_t away = geometry_.position(batch, i) - static_cast<int64_t>(k0);
    for (size_t c = 0; c < nk; ++c) keep[c] &= sees(away - static_cast<int64_t>(c));
  }
  bool allows(size_t batch, size_t, size_t i, size_t j) const override {
    return j < geometry_.key_limit[batch] &&
           sees(geometry_.position(batch, i) - static_cast<int64_t>(j));
  }

 private:
  // A key `away` positions before the query.
  bool sees(int64_t away) const { return away >= 0 && (away <= stride_ || away % stride_ == 0); }
  const Geometry& geometry_;
  const int64_t stride_;
};

}  // namespace

StructurePointer make_strided(const Strided& strided, const Geometry& geometry) {
  return std::make_unique<StridedStage>(strided, geometry);
}

}  // namespace fovea::engine
