#include <algorithm>

#include "engine/structures/structures.h"

namespace fovea::engine {

Cover RangeStructure::cover(size_t batch, size_t head, size_t q0, size_t nq, size_t k0,
                            size_t nk) const {
  bool none = true, all = true;
  for (size_t i = q0; i < q0 + nq && (none || all); ++i) {
    size_t begin, end;
    range(batch, head, i, &begin, &end);
    if (std::max(begin, k0) < std::min(end, k0 + nk)) none = false;
    if (begin > k0 || end < k0 + nk) all = false;
  }
  return none ? Cover::kNone : all ? Cover::kAll : Cover::kSome;
}

bool RangeStructure::allows(size_t batch, size_t head, size_t i, size_t j) const {
  size_t begin, end;
  range(batch, head, i, &begin, &end);
  return begin <= j && j < end;
}

size_t RangeStructure::seek(size_t batch, size_t head, size_t q0, size_t nq, size_t k) const {
  size_t next = SIZE_MAX;
  for (size_t i = q0; i < q0 + nq && next > k; ++i) {
    size_t begin, end;
    range(batch, head, i, &begin, &end);
    if (begin < end && k < end) next = std::min(next, std::max(k, begin));
  }
  return next;
}

void marks_of(const StructureStage& structure, size_t batch, size_t head, size_t i, size_t k0,
              size_t nk, uint8_t* marks) {
  size_t begin, end;
  structure.range(batch, head, i, &begin, &end);
  begin = std::clamp(begin, k0, k0 + nk) - k0;
  end = std::max(begin, std::clamp(end, k0, k0 + nk) - k0);
  std::fill(marks, marks + begin, uint8_t{0});
  std::fill(marks + begin, marks + end, uint8_t{1});
  std::fill(marks + end, marks + nk, uint8_t{0});
  if (begin < end && structure.irregular())
    structure.mask(batch, head, i, k0 + begin, end - begin, marks + begin);
}

}  // namespace fovea::engine
