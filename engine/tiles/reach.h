// Which keys a block of queries sees: spans of key panels to visit and, for a span that is partly
// masked, the range of each row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/stage.h"
#include "engine/tile.h"

namespace fovea::engine {

// Scratch for a masked tile.
struct Marks {
  int32_t begin[kMaxQueries], end[kMaxQueries];
  uint8_t keep[kMaxQueries * kMaxKeys];
};

struct Span {
  size_t k0 = 0, nk = 0;
  Cover cover = Cover::kNone;
};

// Sets what a tile over `span` needs to know of the mask. True when any of its rows sees anything.
template <class T>
bool describe(const StructureStage& structure, const Span& span, Marks& marks, Tile<T>* tile) {
  tile->masked = span.cover == Cover::kSome;
  tile->keep = nullptr;
  if (!tile->masked) return true;
  tile->begin = marks.begin;
  tile->end = marks.end;
  const bool irregular = structure.irregular();
  if (irregular) {
    tile->keep = marks.keep;
    tile->keep_stride = kMaxKeys;
  }
  bool any = false;
  for (size_t r = 0; r < tile->nq; ++r) {
    size_t b, e;
    structure.range(tile->batch, tile->head, tile->q0 + r, &b, &e);
    b = std::clamp(b, span.k0, span.k0 + span.nk) - span.k0;
    e = std::clamp(e, span.k0, span.k0 + span.nk) - span.k0;
    if (irregular && b < e) {
      uint8_t* keep = marks.keep + r * kMaxKeys;
      std::fill(keep + b, keep + e, uint8_t{1});
      structure.mask(tile->batch, tile->head, tile->q0 + r, span.k0 + b, e - b, keep + b);
      while (b < e && !keep[b]) ++b;
      while (e > b && !keep[e - 1]) --e;
    }
    if (b >= e) b = e = 0;
    marks.begin[r] = static_cast<int32_t>(b);
    marks.end[r] = static_cast<int32_t>(e);
    any = any || b < e;
  }
  return any;
}

class Reach {
 public:
  // Queries [q0, q0 + nq) of a head against keys [0, keys).
  Reach(const StructureStage& structure, size_t batch, size_t head, size_t q0, size_t nq,
        size_t keys)
      : structure_(structure), batch_(batch), head_(head), q0_(q0), nq_(nq) {
    size_t begin = keys, end = 0;
    for (size_t i = q0; i < q0 + nq; ++i) {
      size_t b, e;
      structure.range(batch, head, i, &b, &e);
      if (b >= e) continue;
      begin = std::min(begin, b);
      end = std::max(end, e);
    }
    end_ = std::min(end, keys);
    begin_ = std::min(begin, end_) / kPanelKeys * kPanelKeys;
    at_ = begin_;
  }

  // All keys lie in [begin, end); begin is a multiple of kPanelKeys.
  size_t begin() const { return begin_; }
  size_t end() const { return end_; }

  // The next span, ascending, at most kMaxKeys long; none of it is Cover::kNone. What holds few
  // keys is cut at panels.
  bool next(Span* span) {
    const size_t step = structure_.irregular() ? kPanelKeys : kMaxKeys;
    span->nk = 0;
    while (at_ < end_) {
      const size_t n = std::min(step, end_ - at_);
      const Cover cover = structure_.cover(batch_, head_, q0_, nq_, at_, n);
      const bool joins = span->nk > 0 && cover == span->cover && span->nk + n <= kMaxKeys;
      if (span->nk > 0 && !joins) return true;
      if (cover != Cover::kNone) {
        if (span->nk == 0) *span = {at_, 0, cover};
        span->nk += n;
      }
      at_ += n;
    }
    return span->nk > 0;
  }

 private:
  const StructureStage& structure_;
  const size_t batch_, head_, q0_, nq_;
  size_t begin_ = 0, end_ = 0, at_ = 0;
};

}  // namespace fovea::engine
