// Which pairs of a block are allowed: one function for each structure, written from its definition.
#include "torch/composed/block.h"

namespace fovea::composed {
namespace {

// Top left and bottom right differ in the position of the first query.
at::Tensor allowed(const Causal&, const Block& block) { return block.j <= block.position; }

at::Tensor allowed(const Window& window, const Block& block) {
  const at::Tensor ahead = block.j - block.position;
  at::Tensor keep = at::ones_like(ahead, at::kBool);
  if (window.left >= 0) keep = keep & (ahead >= -window.left);
  if (window.right >= 0) keep = keep & (ahead <= window.right);
  return keep;
}

at::Tensor allowed(const Prefix& prefix, const Block& block) {
  const at::Tensor before = block.j <= block.position;
  if (!prefix.lengths.defined()) return before | (block.j < prefix.length);
  return before |
         (block.j < prefix.lengths.narrow(0, block.batch, block.batches).view({-1, 1, 1, 1}));
}

at::Tensor allowed(const Documents& documents, const Block& block) {
  // [L] or [B, L] as [1 or B, 1, L, 1], and [S] or [B, S] as [1 or B, 1, 1, S].
  const at::Tensor queries = at::atleast_2d(documents.query_ids).unsqueeze(1).unsqueeze(-1);
  const at::Tensor keys = at::atleast_2d(documents.key_ids).unsqueeze(1).unsqueeze(-2);
  return at_pairs(queries, block) == at_pairs(keys, block);
}

at::Tensor allowed(const Blocks& blocks, const Block& block) {
  at::Tensor mask = blocks.mask;
  while (mask.dim() < 4) mask = mask.unsqueeze(0);
  if (mask.size(0) > 1) mask = mask.narrow(0, block.batch, block.batches);
  const auto which = [&](const at::Tensor& positions, int64_t dim) {
    return mask.size(dim) > 1 ? positions.floor_divide(blocks.size) : at::zeros_like(positions);
  };
  return mask.index(
      {at::indexing::Slice(), at::indexing::Slice(), which(block.i, 2), which(block.j, 3)});
}

at::Tensor allowed(const Keep& keep, const Block& block) { return at_pairs(keep.mask, block); }

at::Tensor allowed(const Strided& strided, const Block& block) {
  const at::Tensor distance = block.position - block.j;
  return (distance >= 0) &
         ((distance <= strided.stride) | (distance.remainder(strided.stride) == 0));
}

at::Tensor allowed(const Fixed& fixed, const Block& block) {
  const at::Tensor same =
      block.position.floor_divide(fixed.stride) == block.j.floor_divide(fixed.stride);
  const at::Tensor summary = block.j.remainder(fixed.stride) >= fixed.stride - fixed.summary;
  return (block.j <= block.position) & (same | summary);
}

at::Tensor allowed(const First& first, const Block& block) { return block.j < first.count; }

at::Tensor all_allow(const Structure& structure, const Block& block);
at::Tensor everything(const Block& block) {
  return at::ones_like(block.j - block.position, at::kBool);
}

at::Tensor allowed(const AnyOf& any, const Block& block) {
  at::Tensor keep;
  for (const Structure& part : any.parts) {
    const at::Tensor one = all_allow(part, block);
    if (!one.defined()) return {};
    keep = keep.defined() ? keep | one : one;
  }
  return keep;
}

at::Tensor allowed(const Not& complement, const Block& block) {
  const at::Tensor keep = all_allow(complement.parts[0], block);
  return keep.defined() ? keep.logical_not() : everything(block).logical_not();
}

// Dense allows all; the packed structures have chosen the block's keys already.
template <class Everything>
at::Tensor allowed(const Everything&, const Block&) {
  return {};
}

// Undefined where every pair is allowed.
at::Tensor all_allow(const Structure& structure, const Block& block) {
  at::Tensor all;
  for (const auto& kind : structure.all_of) {
    const at::Tensor keep = std::visit([&](const auto& s) { return allowed(s, block); }, kind);
    if (keep.defined()) all = all.defined() ? all & keep : keep;
  }
  return all;
}

}  // namespace

at::Tensor allowed_pairs(const Structure& structure, const Block& block) {
  // A graph's padding has column -1.
  const at::Tensor there = (block.j < block.lengths) & (block.j >= 0);
  const at::Tensor keep = all_allow(structure, block);
  return keep.defined() ? there & keep : there;
}

}  // namespace fovea::composed
