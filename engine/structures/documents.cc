// Equal ids. Ids that never go down (documents one after another, the usual packing) make every row
// one range, found once; others are compared pair by pair.
#include <algorithm>

#include "engine/structures/structures.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

// ids[batch][position], for ids of rank 1 shared by all items.
class Ids {
 public:
  explicit Ids(const View& view) : view_(view) {}
  int32_t at(size_t batch, size_t i) const {
    return view_.rank == 2
               ? element<int32_t>(view_, static_cast<int64_t>(batch), static_cast<int64_t>(i))
               : element<int32_t>(view_, static_cast<int64_t>(i));
  }
  bool sorted(size_t batch, size_t n) const {
    for (size_t i = 1; i < n; ++i) {
      if (at(batch, i) < at(batch, i - 1)) return false;
    }
    return true;
  }

 private:
  const View view_;
};

class SortedStage final : public RangeStructure {
 public:
  SortedStage(const Ids& queries, const Ids& keys, const Geometry& g) : first_(g.batches + 1, 0) {
    for (size_t b = 0; b < g.batches; ++b) {
      size_t begin = 0, end = 0;
      const size_t limit = g.key_limit[b];
      for (size_t i = 0; i < g.query_count[b]; ++i) {
        const int32_t id = queries.at(b, i);
        while (begin < limit && keys.at(b, begin) < id) ++begin;
        end = std::max(begin, end);
        while (end < limit && keys.at(b, end) == id) ++end;
        ranges_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
      }
      first_[b + 1] = ranges_.size();
    }
  }
  void range(size_t batch, size_t, size_t i, size_t* begin, size_t* end) const override {
    const Range& r = ranges_[first_[batch] + i];
    *begin = r.begin;
    *end = r.end;
  }

 private:
  struct Range {
    uint32_t begin, end;
  };
  Vector<Range> ranges_;
  Vector<size_t> first_;
};

class UnsortedStage final : public StructureStage {
 public:
  UnsortedStage(const Ids& queries, const Ids& keys, const Geometry& geometry)
      : queries_(queries), keys_(keys), geometry_(geometry) {}
  Cover cover(size_t batch, size_t, size_t q0, size_t nq, size_t k0, size_t nk) const override {
    bool none = true, all = true;
    for (size_t i = q0; i < q0 + nq && (none || all); ++i) {
      for (size_t j = k0; j < k0 + nk; ++j) (allows(batch, 0, i, j) ? none : all) = false;
    }
    return none ? Cover::kNone : all ? Cover::kAll : Cover::kSome;
  }
  void range(size_t batch, size_t, size_t, size_t* begin, size_t* end) const override {
    *begin = 0;
    *end = geometry_.key_limit[batch];
  }
  bool irregular() const override { return true; }
  void mask(size_t batch, size_t, size_t i, size_t k0, size_t nk, uint8_t* keep) const override {
    const int32_t id = queries_.at(batch, i);
    for (size_t c = 0; c < nk; ++c) keep[c] &= keys_.at(batch, k0 + c) == id;
  }
  bool allows(size_t batch, size_t, size_t i, size_t j) const override {
    return j < geometry_.key_limit[batch] && queries_.at(batch, i) == keys_.at(batch, j);
  }

 private:
  const Ids queries_, keys_;
  const Geometry& geometry_;
};

}  // namespace

StructurePointer make_documents(const Documents& documents, const Geometry& geometry) {
  const Ids queries(documents.query_ids), keys(documents.key_ids);
  bool sorted = true;
  for (size_t b = 0; b < geometry.batches && sorted; ++b) {
    sorted = queries.sorted(b, geometry.query_count[b]) && keys.sorted(b, geometry.key_limit[b]);
  }
  if (sorted) return std::make_unique<SortedStage>(queries, keys, geometry);
  return std::make_unique<UnsortedStage>(queries, keys, geometry);
}

}  // namespace fovea::engine
