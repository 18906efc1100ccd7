// Attention on tensors: one operation, three choices.
//
//   auto out = fovea::attend(query, key, value,
//                            {.score = fovea::Additive{weight}, .normaliser = fovea::Sparsemax{},
//                             .structure = fovea::Ragged{query_offsets, key_offsets}});
//
// query [B, H, L, E], key [B, Hkv, S, E], value [B, Hkv, S, Ev]; with Ragged or Graph, packed
// (total, H, E); with Paged, key and value [pages, page_size, Hkv, E]. Differentiable in all tensors
// of floating-point numbers. Throws InvalidArgument, or Unsupported (no meaning): fovea/error.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "fovea/choices.h"
#include "fovea/error.h"

namespace fovea {

using Dot = choice::Dot<at::Tensor>;
using Bilinear = choice::Bilinear<at::Tensor>;
using Additive = choice::Additive<at::Tensor>;
using GatedAdditive = choice::GatedAdditive<at::Tensor>;
using Kernel = choice::Kernel<at::Tensor>;
using Cosine = choice::Cosine<at::Tensor>;
using RankOne = choice::RankOne<at::Tensor>;
using Location = choice::Location<at::Tensor>;
using Constant = choice::Constant<at::Tensor>;
using Bias = choice::Bias<at::Tensor>;
using EdgeBias = choice::EdgeBias<at::Tensor>;
using Alibi = choice::Alibi<at::Tensor>;
using Relative = choice::Relative<at::Tensor>;
using SoftCap = choice::SoftCap<at::Tensor>;
using Custom = choice::Custom<at::Tensor>;
using Softmax = choice::Softmax<at::Tensor>;
using KernelRatio = choice::KernelRatio<at::Tensor>;
using Unnormalised = choice::Unnormalised<at::Tensor>;
using Uniform = choice::Uniform<at::Tensor>;
using Sigmoid = choice::Sigmoid<at::Tensor>;
using Sparsemax = choice::Sparsemax<at::Tensor>;
using Entmax = choice::Entmax<at::Tensor>;
using TopK = choice::TopK<at::Tensor>;
using Hard = choice::Hard<at::Tensor>;
using Dense = choice::Dense<at::Tensor>;
using Causal = choice::Causal<at::Tensor>;
using Window = choice::Window<at::Tensor>;
using Prefix = choice::Prefix<at::Tensor>;
using Documents = choice::Documents<at::Tensor>;
using Blocks = choice::Blocks<at::Tensor>;
using Keep = choice::Keep<at::Tensor>;
using Ragged = choice::Ragged<at::Tensor>;
using Graph = choice::Graph<at::Tensor>;
using Strided = choice::Strided<at::Tensor>;
using Fixed = choice::Fixed<at::Tensor>;
using First = choice::First<at::Tensor>;
using Paged = choice::Paged<at::Tensor>;
using AnyOf = choice::AnyOf<at::Tensor>;
using Not = choice::Not<at::Tensor>;
using Score = choice::Score<at::Tensor>;
using Modifier = choice::Modifier<at::Tensor>;
using Normaliser = choice::Normaliser<at::Tensor>;
using Structure = choice::Structure<at::Tensor>;
using PerItem = choice::PerItem<at::Tensor>;
using choice::Activation;
using choice::Alignment;
using choice::KernelName;

struct Choices {
  Score score = Dot{};
  Normaliser normaliser = Softmax{};
  Structure structure = Dense{};
};

struct Options {
  std::optional<double> scale =
      std::nullopt;      // scale of a Dot or Bilinear score that gives none itself
  double dropout_p = 0;  // probability of dropping a weight; kept ones are scaled by 1 / (1 - p)
  at::Tensor key_lengths =
      {};  // int [B], or undefined: batch item b sees keys j < key_lengths[b] only
  std::optional<uint64_t> seed =
      std::nullopt;  // seed of dropout and Hard{sample}; absent: drawn from libtorch's generator
  bool strict =
      false;  // throw Unsupported, with every reason, instead of taking a path that is not fused
  bool allow_empty_rows =
      true;  // a query that sees no key has output and gradient zero; false: throw InvalidArgument
  PerItem query_offset = {};  // the position of query row 0 among the keys, a number or int [B]:
                              // when decoding with a cache, the number of keys before the query
                              // (fovea/choices/structures.h says what depends on positions)
  bool check_finite = false;  // false: a query that sees a score of NaN or +infinity has output,
                              // lse and gradient NaN, and changes no other query; true: throw
                              // InvalidArgument naming the first such item, head and row
};

// [B, H, L, Ev], or (total, H, Ev) for packed tensors; the query's type.
at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const Choices& choices = {}, const Options& options = {});

struct Attended {
  at::Tensor output;
  at::Tensor lse;  // [B, H, L] or (total, H): log-sum-exp of the allowed scores, differentiable;
                   // -inf for an empty row. Softmax, TopK, and Hard (there: log-probability of the
                   // choice). Undefined for the others.
  int64_t empty_rows = 0;  // queries that saw no key: their output and gradient are zero
};
// The same call, which also returns the log-sum-exp and the number of empty rows.
Attended attend_full(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Choices& choices = {}, const Options& options = {});

// Which weights: chosen query rows and heads (int tensors; undefined for all), the largest
// `top_k` of each row (0: whole rows), or sums over the chosen rows.
struct Selection {
  at::Tensor rows = {}, heads = {};
  int64_t top_k = 0;
  bool column_sums = false;
};
struct SelectedWeights {
  at::Tensor weights;  // [B, heads, rows, S], or [B, heads, rows, top_k] in descending order, or
                       // [B, heads, S] of column sums
  at::Tensor indices;  // int32 [B, heads, rows, top_k], -1 where a row sees fewer keys; undefined
                       // unless top_k > 0
};
// Some of the weights, before dropout; no others are stored. Not differentiable.
SelectedWeights weights(const at::Tensor& query, const at::Tensor& key, const Choices& choices = {},
                        const Selection& selection = {}, const Options& options = {});

// The path a call takes, and why each faster path declines; one line for each path.
std::string explain_dispatch(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const Choices& choices = {},
                             const Options& options = {});

}  // namespace fovea
