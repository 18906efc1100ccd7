// One factory for each file of this folder. Queries are given by row; a structure that depends on
// positions takes them from the geometry.
#pragma once

#include <algorithm>
#include <memory>

#include "engine/call/problem.h"
#include "engine/stage.h"

namespace fovea::engine {

using StructurePointer = std::unique_ptr<StructureStage>;

StructurePointer make_dense(const Geometry& geometry);  // key lengths only
StructurePointer make_causal(const Geometry& geometry);
StructurePointer make_window(const Window& window, const Geometry& geometry);
StructurePointer make_prefix(const Prefix& prefix, const Geometry& geometry);
StructurePointer make_documents(const Documents& documents, const Geometry& geometry);
StructurePointer make_blocks(const Blocks& blocks, const Geometry& geometry);
StructurePointer make_keep(const Keep& keep, const Geometry& geometry);
StructurePointer make_strided(const Strided& strided, const Geometry& geometry);
StructurePointer make_fixed(const Fixed& fixed, const Geometry& geometry);
StructurePointer make_first(const First& first, const Geometry& geometry);
StructurePointer make_any_of(Vector<StructurePointer> any_of);
StructurePointer make_complement(StructurePointer part, const Geometry& geometry);
StructurePointer make_conjunction(Vector<StructurePointer> all_of);

// How many keys are at or before the position of query row i.
inline size_t keys_up_to(const Geometry& geometry, size_t batch, size_t i) {
  const auto limit = static_cast<int64_t>(geometry.key_limit[batch]);
  return static_cast<size_t>(std::clamp<int64_t>(geometry.position(batch, i) + 1, 0, limit));
}

// A structure whose every row is one range of keys: `range` says it all.
class RangeStructure : public StructureStage {
 public:
  Cover cover(size_t batch, size_t head, size_t q0, size_t nq, size_t k0, size_t nk) const override;
  bool allows(size_t batch, size_t head, size_t i, size_t j) const override;
  size_t seek(size_t batch, size_t head, size_t q0, size_t nq, size_t k) const override;
};

// marks[c] = may query i see key k0 + c, by the structure's range and its mask together.
void marks_of(const StructureStage& structure, size_t batch, size_t head, size_t i, size_t k0,
              size_t nk, uint8_t* marks);

}  // namespace fovea::engine
