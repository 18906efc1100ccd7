// Which keys a block of queries sees: spans of key panels to visit and, for a span that is partly
// masked, the range of each row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

// The columns [*begin, *end) of a span that a query sees: whole, or with holes, which are then marked in
// `keep`. Returns whether there are any.
inline bool mark_row(const StructureStage& structure, size_t batch, size_t head, size_t i,
                     const Span& span, uint8_t* keep, size_t* begin, size_t* end) {
  structure.range(batch, head, i, begin, end);
  *begin = std::clamp(*begin, span.k0, span.k0 + span.nk) - span.k0;
  *end = std::clamp(*end, span.k0, span.k0 + span.nk) - span.k0;
  if (*begin >= *end) return false;
  std::fill(keep + *begin, keep + *end, uint8_t{1});
  structure.mask(batch, head, i, span.k0 + *begin, *end - *begin, keep + *begin);
  while (*begin < *end && !keep[*begin]) ++*begin;
  while (*end > *begin && !keep[*end - 1]) --*end;
  return std::memchr(keep + *begin, 0, *end - *begin) != nullptr;
}
// The same for a structure that lists its ranges: a byte is written only where there are holes.
inline bool mark_ranges(const StructureStage& structure, size_t batch, size_t head, size_t i,
                        const Span& span, uint8_t* keep, size_t* begin, size_t* end) {
  KeyRanges ranges;
  structure.ranges(batch, head, i, &ranges);
  *begin = *end = 0;
  size_t met = 0;
  for (size_t n = 0; n < ranges.count; ++n) {
    const size_t b = std::clamp(ranges.each[n].begin, span.k0, span.k0 + span.nk) - span.k0,
                 e = std::clamp(ranges.each[n].end, span.k0, span.k0 + span.nk) - span.k0;
    if (b >= e) continue;
    if (met++ == 0) {
      *begin = b;
    } else {
      std::fill(keep + *end, keep + b, uint8_t{0});
    }
    *end = e;
  }
  return met > 1;
}

// Sets what a tile over `span` needs to know of the mask. True when any of its rows sees anything.
// Cuts from the span what no row sees: whole panels at its front, and what is past whole vectors at
// its end.
template <class T>
bool describe(const StructureStage& structure, Span& span, Marks& marks, Tile<T>* tile) {
  tile->masked = span.cover == Cover::kSome;
  tile->keep = nullptr;
  if (!tile->masked) return true;
  tile->begin = marks.begin;
  tile->end = marks.end;
  tile->keep_stride = kMaxKeys;
  const bool irregular = structure.irregular(), lists = structure.most_ranges() > 0;
  // What mark_ranges leaves alone is kept.
  if (irregular && lists) {
    for (size_t r = 0; r < tile->nq; ++r)
      std::fill_n(marks.keep + r * kMaxKeys, span.nk, uint8_t{1});
  }
  size_t low = span.nk, high = 0;
  bool holes = false;
  for (size_t r = 0; r < tile->nq; ++r) {
    const size_t i = tile->q0 + r;
    uint8_t* keep = marks.keep + r * kMaxKeys;
    size_t b, e;
    if (irregular && lists) {
      holes |= mark_ranges(structure, tile->batch, tile->head, i, span, keep, &b, &e);
    } else if (irregular) {
      holes |= mark_row(structure, tile->batch, tile->head, i, span, keep, &b, &e);
    } else {
      structure.range(tile->batch, tile->head, i, &b, &e);
      b = std::clamp(b, span.k0, span.k0 + span.nk) - span.k0;
      e = std::clamp(e, span.k0, span.k0 + span.nk) - span.k0;
    }
    if (b >= e) b = e = 0;
    marks.begin[r] = static_cast<int32_t>(b);
    marks.end[r] = static_cast<int32_t>(e);
    if (b >= e) continue;
    low = std::min(low, b);
    high = std::max(high, e);
  }
  if (low >= high) return false;
  const size_t front = low / kPanelKeys * kPanelKeys;
  for (size_t r = 0; r < tile->nq && front > 0; ++r) {
    marks.begin[r] = std::max(0, marks.begin[r] - static_cast<int32_t>(front));
    marks.end[r] = std::max(0, marks.end[r] - static_cast<int32_t>(front));
  }
  if (holes) tile->keep = marks.keep + front;
  span.k0 += front;
  span.nk = std::min(span.nk, (high + kRowPadding - 1) / kRowPadding * kRowPadding) - front;
  return true;
}

class Reach {
 public:
  // Queries [q0, q0 + nq) of a head against keys [0, keys).
  Reach(const StructureStage& structure, size_t batch, size_t head, size_t q0, size_t nq,
        size_t keys)
      : structure_(structure),
        lists_(structure.most_ranges() > 0),
        batch_(batch),
        head_(head),
        q0_(q0),
        nq_(nq) {
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
      const bool same = cover == span->cover || (lists_ && cover != Cover::kNone);
      if (span->nk > 0 && (!same || span->nk + n > kMaxKeys)) return true;
      if (cover != Cover::kNone) {
        if (span->nk == 0) *span = {at_, 0, cover};
        if (cover != span->cover) span->cover = Cover::kSome;
        span->nk += n;
      }
      at_ += n;
      if (cover == Cover::kNone && at_ < end_) {
        const size_t next = structure_.seek(batch_, head_, q0_, nq_, at_);
        at_ = next >= end_ ? end_ : next / kPanelKeys * kPanelKeys;
      }
    }
    return span->nk > 0;
  }

 private:
  const StructureStage& structure_;
  // Rows of a few ranges need no byte for each pair: long tiles are worth a mask at their ends.
  const bool lists_;
  const size_t batch_, head_, q0_, nq_;
  size_t begin_ = 0, end_ = 0, at_ = 0;
};

}  // namespace fovea::engine
