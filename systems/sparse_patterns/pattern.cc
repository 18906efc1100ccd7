#include "systems/sparse_patterns/pattern.h"

#include <torch/torch.h>

#include "fovea/attend.h"

namespace fovea::systems::sparse_patterns {
namespace {

namespace F = torch::nn::functional;

bool first_part(const Pattern& p, int64_t i, int64_t j) {
  switch (p.kind) {
    case Kind::kDense:
      return true;
    case Kind::kStrided:
    case Kind::kLocal:
      return i - j <= p.stride;
    case Kind::kFixed:
      return i / p.stride == j / p.stride;
    case Kind::kBlock:
      return i / p.stride - j / p.stride <= 1;
  }
  return false;
}

bool second_part(const Pattern& p, int64_t i, int64_t j) {
  switch (p.kind) {
    case Kind::kDense:
      return true;
    case Kind::kStrided:
      return (i - j) % p.stride == 0;
    case Kind::kLocal:
      return i - j <= p.stride;
    case Kind::kFixed:
      return i == j || j % p.stride >= p.stride - p.summary;
    case Kind::kBlock:
      return i == j || j < p.global;
  }
  return false;
}

// Rows in blocks of l, the last filled up: [B, H, n, E] -> [B, blocks, H, l, E].
torch::Tensor in_blocks(const torch::Tensor& x, int64_t stride) {
  const int64_t missing = (stride - x.size(2) % stride) % stride;
  return F::pad(x, F::PadFuncOptions({0, 0, 0, missing}))
      .unflatten(2, {-1, stride})
      .transpose(1, 2);
}

// Positions with the same remainder of l are sequences of their own, and each is causal.
torch::Tensor columns(const torch::Tensor& query, const torch::Tensor& key,
                      const torch::Tensor& value, int64_t stride) {
  const auto by_column = [&](const torch::Tensor& x) {  // [B l, H, blocks, E]
    return in_blocks(x, stride).permute({0, 3, 2, 1, 4}).flatten(0, 1);
  };
  const torch::Tensor out =
      attend(by_column(query), by_column(key), by_column(value), {.structure = Causal{}});
  return out.unflatten(0, {query.size(0), stride})
      .permute({0, 2, 3, 1, 4})
      .flatten(2, 3)
      .narrow(2, 0, query.size(2));
}

// A part within each block, and the last c of every earlier block; their sums are joined by their
// log-sum-exp.
struct FixedParts {
  Structure within;
  bool earlier;
};
torch::Tensor fixed(const torch::Tensor& query, const torch::Tensor& key,
                    const torch::Tensor& value, const Pattern& p, const FixedParts& parts) {
  const torch::Tensor q = in_blocks(query, p.stride), k = in_blocks(key, p.stride),
                      v = in_blocks(value, p.stride);
  const int64_t items = q.size(0), blocks = q.size(1);
  const auto batched = [](const torch::Tensor& x) { return x.flatten(0, 1); };
  const auto whole = [&](const torch::Tensor& x) {  // [B blocks, H, l, E] -> [B, H, n, E]
    return x.unflatten(0, {items, blocks})
        .transpose(1, 2)
        .flatten(2, 3)
        .narrow(2, 0, query.size(2));
  };
  const Attended own = attend_full(batched(q), batched(k), batched(v), {.structure = parts.within});
  if (!parts.earlier || blocks == 1) return whole(own.output);
  const auto summaries = [&](const torch::Tensor& x) {  // the same for every block of queries
    const torch::Tensor last = x.narrow(3, p.stride - p.summary, p.summary);
    return last.transpose(1, 2)
        .flatten(2, 3)
        .unsqueeze(1)
        .expand({-1, blocks, -1, -1, -1})
        .flatten(0, 1);
  };
  const torch::Tensor seen =
      (torch::arange(blocks, torch::kInt) * p.summary).repeat({items}).to(query.device());
  const Attended before =
      attend_full(batched(q), summaries(k), summaries(v), {}, {.key_lengths = seen});
  const torch::Tensor share = torch::stack({own.lse, before.lse}).softmax(0).unsqueeze(-1);
  return whole(own.output * share[0] + before.output * share[1]);
}

torch::Tensor attend_fixed(const torch::Tensor& query, const torch::Tensor& key,
                           const torch::Tensor& value, const Pattern& p, Part part) {
  if (part != Part::kSecond) return fixed(query, key, value, p, {Causal{}, part == Part::kWhole});
  const torch::Tensor summary =
      torch::arange(p.stride, query.device()).ge(p.stride - p.summary).view({1, 1, 1, -1});
  return fixed(query, key, value, p,
               {Causal{} & (Keep{summary} | Window{.left = 0, .right = 0}), true});
}

Structure block_structure(const Pattern& p, Part part, const torch::Tensor& query) {
  const int64_t blocks = (query.size(2) + p.stride - 1) / p.stride;
  const torch::Tensor at = torch::arange(blocks, query.device());
  const torch::Tensor back = at.unsqueeze(1) - at.unsqueeze(0);
  const Blocks near{(back >= 0).logical_and(back <= 1).view({1, 1, blocks, blocks}), p.stride};
  const Structure far = First{p.global} | Window{.left = 0, .right = 0};
  if (part == Part::kFirst) return Causal{} & near;
  if (part == Part::kSecond) return Causal{} & far;
  return Causal{} & (near | First{p.global});
}

Structure structure_of(const Pattern& p, Part part, const torch::Tensor& query) {
  switch (p.kind) {
    case Kind::kStrided:
      if (part == Part::kWhole) return Strided{p.stride};
      [[fallthrough]];
    case Kind::kLocal:
      return Window{.left = p.stride, .right = 0};
    case Kind::kBlock:
      return block_structure(p, part, query);
    default:
      return Causal{};
  }
}

}  // namespace

Part part_of(Combination combination, int64_t layer, int64_t head, int64_t heads) {
  switch (combination) {
    case Combination::kAlternate:
      return layer % 2 == 0 ? Part::kFirst : Part::kSecond;
    case Combination::kHeads:
      return 2 * head < heads ? Part::kFirst : Part::kSecond;
    case Combination::kMerge:
      break;
  }
  return Part::kWhole;
}

bool allows(const Pattern& pattern, Part part, int64_t i, int64_t j) {
  if (j > i) return false;
  return (part != Part::kSecond && first_part(pattern, i, j)) ||
         (part != Part::kFirst && second_part(pattern, i, j));
}

std::vector<int64_t> keys_of(const Pattern& pattern, Part part, int64_t i) {
  std::vector<int64_t> out;
  for (int64_t j = 0; j <= i; ++j)
    if (allows(pattern, part, i, j)) out.push_back(j);
  return out;
}

torch::Tensor mask_of(const Pattern& pattern, Part part, int64_t n) {
  torch::Tensor out = torch::zeros({n, n}, torch::kBool);
  for (int64_t i = 0; i < n; ++i)
    for (const int64_t j : keys_of(pattern, part, i)) out.data_ptr<bool>()[i * n + j] = true;
  return out;
}

int64_t pairs_of(const Pattern& pattern, Part part, int64_t n) {
  int64_t out = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) out += allows(pattern, part, i, j);
  return out;
}

torch::Tensor attend_pattern(const torch::Tensor& query, const torch::Tensor& key,
                             const torch::Tensor& value, const Pattern& pattern, Part part) {
  if (pattern.kind == Kind::kFixed) return attend_fixed(query, key, value, pattern, part);
  if (pattern.kind == Kind::kStrided && part == Part::kSecond)
    return columns(query, key, value, pattern.stride);
  return attend(query, key, value, {.structure = structure_of(pattern, part, query)});
}

}  // namespace fovea::systems::sparse_patterns
