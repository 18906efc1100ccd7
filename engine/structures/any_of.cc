// Several structures, one of which must allow a pair.
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class AnyOfStage final : public StructureStage {
 public:
  explicit AnyOfStage(Vector<StructurePointer> any_of) : any_of_(std::move(any_of)) {}

  Cover cover(size_t batch, size_t head, size_t q0, size_t nq, size_t k0,
              size_t nk) const override {
    Cover most = Cover::kNone;
    for (const auto& part : any_of_) {
      const Cover one = part->cover(batch, head, q0, nq, k0, nk);
      if (one == Cover::kAll) return Cover::kAll;
      if (one == Cover::kSome) most = Cover::kSome;
    }
    return most;
  }
  void range(size_t batch, size_t head, size_t i, size_t* begin, size_t* end) const override {
    *begin = SIZE_MAX;
    *end = 0;
    for (const auto& part : any_of_) {
      size_t b, e;
      part->range(batch, head, i, &b, &e);
      if (b >= e) continue;
      *begin = std::min(*begin, b);
      *end = std::max(*end, e);
    }
    *begin = std::min(*begin, *end);
  }
  bool irregular() const override { return true; }
  void mask(size_t batch, size_t head, size_t i, size_t k0, size_t nk,
            uint8_t* keep) const override {
    uint8_t any[kMaxKeys], one[kMaxKeys];
    for (size_t from = 0; from < nk; from += kMaxKeys) {
      const size_t n = std::min(kMaxKeys, nk - from);
      std::fill_n(any, n, uint8_t{0});
      for (const auto& part : any_of_) {
        marks_of(*part, batch, head, i, k0 + from, n, one);
        for (size_t c = 0; c < n; ++c) any[c] |= one[c];
      }
      for (size_t c = 0; c < n; ++c) keep[from + c] &= any[c];
    }
  }
  bool allows(size_t batch, size_t head, size_t i, size_t j) const override {
    return std::any_of(any_of_.begin(), any_of_.end(),
                       [&](const auto& part) { return part->allows(batch, head, i, j); });
  }
  size_t seek(size_t batch, size_t head, size_t q0, size_t nq, size_t k) const override {
    size_t next = SIZE_MAX;
    for (const auto& part : any_of_) next = std::min(next, part->seek(batch, head, q0, nq, k));
    return next;
  }
  size_t most_ranges() const override {
    size_t sum = 0;
    for (const auto& part : any_of_) {
      if (part->most_ranges() == 0) return 0;
      sum += part->most_ranges();
    }
    return sum <= KeyRanges::kMost ? sum : 0;
  }
  void ranges(size_t batch, size_t head, size_t i, KeyRanges* out) const override {
    out->count = 0;
    for (const auto& part : any_of_) {
      KeyRanges one;
      part->ranges(batch, head, i, &one);
      for (size_t n = 0; n < one.count; ++n) out->each[out->count++] = one.each[n];
    }
    std::sort(out->each, out->each + out->count,
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    size_t kept = 0;
    for (size_t n = 0; n < out->count; ++n) {
      if (kept > 0 && out->each[n].begin <= out->each[kept - 1].end)
        out->each[kept - 1].end = std::max(out->each[kept - 1].end, out->each[n].end);
      else
        out->each[kept++] = out->each[n];
    }
    out->count = kept;
  }

 private:
  const Vector<StructurePointer> any_of_;
};

}  // namespace

StructurePointer make_any_of(Vector<StructurePointer> any_of) {
  return std::make_unique<AnyOfStage>(std::move(any_of));
}

}  // namespace fovea::engine
