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

}  // namespace fovea::engine
