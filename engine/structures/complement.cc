// The keys, up to the batch item's length, that a structure does not allow.
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class ComplementStage final : public StructureStage {
 public:
  ComplementStage(StructurePointer part, const Geometry& geometry)
      : part_(std::move(part)), geometry_(geometry) {}

  Cover cover(size_t batch, size_t head, size_t q0, size_t nq, size_t k0,
              size_t nk) const override {
    const size_t limit = geometry_.key_limit[batch];
    const Cover one = part_->cover(batch, head, q0, nq, k0, nk);
    if (k0 >= limit || one == Cover::kAll) return Cover::kNone;
    return one == Cover::kNone && k0 + nk <= limit ? Cover::kAll : Cover::kSome;
  }
  void range(size_t batch, size_t head, size_t i, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = geometry_.key_limit[batch];
    if (part_->irregular()) return;
    size_t b, e;
    part_->range(batch, head, i, &b, &e);
    if (b >= e) return;
    if (b == 0) *begin = std::min(e, *end);
    if (e >= *end) *end = std::max(*begin, b);
  }
  bool irregular() const override { return true; }
  void mask(size_t batch, size_t head, size_t i, size_t k0, size_t nk,
            uint8_t* keep) const override {
    uint8_t one[kMaxKeys];
    for (size_t from = 0; from < nk; from += kMaxKeys) {
      const size_t n = std::min(kMaxKeys, nk - from);
      marks_of(*part_, batch, head, i, k0 + from, n, one);
      for (size_t c = 0; c < n; ++c) keep[from + c] &= one[c] == 0;
    }
  }
  bool allows(size_t batch, size_t head, size_t i, size_t j) const override {
    return j < geometry_.key_limit[batch] && !part_->allows(batch, head, i, j);
  }
  size_t seek(size_t batch, size_t head, size_t q0, size_t nq, size_t k) const override {
    if (!part_->irregular()) {
      // What every query's range holds is skipped.
      size_t begin = 0, end = SIZE_MAX;
      for (size_t i = q0; i < q0 + nq; ++i) {
        size_t b, e;
        part_->range(batch, head, i, &b, &e);
        begin = std::max(begin, b);
        end = std::min(end, e);
      }
      if (begin <= k && k < end) k = end;
    }
    return k < geometry_.key_limit[batch] ? k : SIZE_MAX;
  }
  size_t most_ranges() const override {
    const size_t n = part_->most_ranges();
    return n == 0 || n + 1 > KeyRanges::kMost ? 0 : n + 1;
  }
  void ranges(size_t batch, size_t head, size_t i, KeyRanges* out) const override {
    KeyRanges one;
    part_->ranges(batch, head, i, &one);
    const size_t limit = geometry_.key_limit[batch];
    size_t at = 0;
    out->count = 0;
    const auto put = [&](size_t end) {
      if (at < end) out->each[out->count++] = {at, end};
    };
    for (size_t n = 0; n < one.count; ++n) {
      put(std::min(one.each[n].begin, limit));
      at = one.each[n].end;
    }
    put(limit);
  }

 private:
  const StructurePointer part_;
  const Geometry& geometry_;
};

}  // namespace

StructurePointer make_complement(StructurePointer part, const Geometry& geometry) {
  return std::make_unique<ComplementStage>(std::move(part), geometry);
}

}  // namespace fovea::engine
