// Several structures that must all allow a pair.
#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

class ConjunctionStage final : public StructureStage {
 public:
  explicit ConjunctionStage(Vector<StructurePointer> all_of) : all_of_(std::move(all_of)) {}

  Cover cover(size_t batch, size_t head, size_t q0, size_t nq, size_t k0,
              size_t nk) const override {
    Cover all = Cover::kAll;
    for (const auto& part : all_of_) {
      const Cover one = part->cover(batch, head, q0, nq, k0, nk);
      if (one == Cover::kNone) return Cover::kNone;
      if (one == Cover::kSome) all = Cover::kSome;
    }
    return all;
  }
  void range(size_t batch, size_t head, size_t i, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = SIZE_MAX;
    for (const auto& part : all_of_) {
      size_t b, e;
      part->range(batch, head, i, &b, &e);
      *begin = std::max(*begin, b);
      *end = std::min(*end, e);
    }
    *begin = std::min(*begin, *end);
  }
  bool irregular() const override {
    return std::any_of(all_of_.begin(), all_of_.end(),
                       [](const auto& part) { return part->irregular(); });
  }
  void mask(size_t batch, size_t head, size_t i, size_t k0, size_t nk,
            uint8_t* keep) const override {
    for (const auto& part : all_of_) part->mask(batch, head, i, k0, nk, keep);
  }
  bool allows(size_t batch, size_t head, size_t i, size_t j) const override {
    return std::all_of(all_of_.begin(), all_of_.end(),
                       [&](const auto& part) { return part->allows(batch, head, i, j); });
  }
  // No key before the answer of one part counts for the others: they go on from there until all
  // agree.
  size_t seek(size_t batch, size_t head, size_t q0, size_t nq, size_t k) const override {
    for (size_t before = SIZE_MAX; k != before && k != SIZE_MAX;) {
      before = k;
      for (const auto& part : all_of_) {
        if (k != SIZE_MAX) k = part->seek(batch, head, q0, nq, k);
      }
    }
    return k;
  }
  // Each range of a common one begins where a range of a part begins, and the first begins twice.
  size_t most_ranges() const override {
    size_t sum = 1;
    for (const auto& part : all_of_) {
      if (part->most_ranges() == 0) return 0;
      sum += part->most_ranges() - 1;
    }
    return sum <= KeyRanges::kMost ? sum : 0;
  }
  void ranges(size_t batch, size_t head, size_t i, KeyRanges* out) const override {
    all_of_[0]->ranges(batch, head, i, out);
    for (size_t n = 1; n < all_of_.size(); ++n) {
      const KeyRanges before = *out;
      KeyRanges one;
      all_of_[n]->ranges(batch, head, i, &one);
      out->count = 0;
      for (size_t a = 0, b = 0; a < before.count && b < one.count;) {
        const auto &x = before.each[a], &y = one.each[b];
        const size_t begin = std::max(x.begin, y.begin), end = std::min(x.end, y.end);
        if (begin < end) out->each[out->count++] = {begin, end};
        ++(x.end < y.end ? a : b);
      }
    }
  }

 private:
  const Vector<StructurePointer> all_of_;
};

}  // namespace

StructurePointer make_conjunction(Vector<StructurePointer> all_of) {
  if (all_of.size() == 1) return std::move(all_of.front());
  return std::make_unique<ConjunctionStage>(std::move(all_of));
}

}  // namespace fovea::engine
