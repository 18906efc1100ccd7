// The three choices that make an attention mechanism, as plain values: score, normaliser,
// structure.
//
// Each type is a template over the array it refers to, so that the engine (raw views), the libtorch
// layer (tensors) and the bindings share one definition of names, fields and defaults. `fields`
// lists a type's fields once; flattening for an operator's schema, parsing a command line and
// printing all go through it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace fovea::choice {

enum class Activation : uint8_t { kTanh, kLeakyRelu };
enum class Alignment : uint8_t { kTopLeft, kBottomRight };

// The kernels of Nadaraya-Watson regression, K(u) with u = |D(q - k)| / h.
enum class KernelName : uint8_t {
  kGaussian,
  kLaplace,
  kLogistic,
  kSigmoid,
  kSilverman,
  kCauchy,  // infinite support
  kBox,
  kTriangular,
  kEpanechnikov,
  kQuartic,
  kTriweight,
  kTricube,
  kCosine,  // zero for u > 1
};

// ---- scores -------------------------------------------------------------------------------------
// q [.., E] is a query row, k [.., E] a key row of one head.

// scale * q.k; scale 1/sqrt(E) when absent.
template <class Array>
struct Dot {
  static constexpr const char* kName = "dot";
  std::optional<double> scale;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("scale", scale);
  }
};

// scale * q' W k; weight [E_query, E_key] or [H, E_query, E_key]; scale 1 when absent.
template <class Array>
struct Bilinear {
  static constexpr const char* kName = "bilinear";
  Array weight;
  std::optional<double> scale;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("weight", weight);
    visit("scale", scale);
  }
};

// w' f(q + k), query and key arriving projected; weight [E] or [H, E]. Leaky ReLU (slope 0.2) makes
// it GATv2's.
template <class Array>
struct Additive {
  static constexpr const char* kName = "additive";
  Array weight;
  Activation activation = Activation::kTanh;
  double negative_slope = 0.2;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("weight", weight);
    visit("activation", activation);
    visit("negative_slope", negative_slope);
  }
};

// w' (tanh(a) * sigmoid(b)) with [a; b] = q + k, the two halves of width E/2; weight [E/2] or [H,
// E/2].
template <class Array>
struct GatedAdditive {
  static constexpr const char* kName = "gated_additive";
  Array weight;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("weight", weight);
  }
};

// K(u), u = |D(q - k)| / h. bandwidth: [1], [H], or [B, H, L] (one for each query); metric: empty,
// [E] (diagonal) or [E', E].
template <class Array>
struct Kernel {
  static constexpr const char* kName = "kernel";
  KernelName name = KernelName::kGaussian;
  Array bandwidth;
  Array metric;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("name", name);
    visit("bandwidth", bandwidth);
    visit("metric", metric);
  }
};

// beta * cos(q, k); beta [1] or [H], or absent for 1.
template <class Array>
struct Cosine {
  static constexpr const char* kName = "cosine";
  Array beta;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("beta", beta);
  }
};

// LeakyReLU(q + k), query and key of width 1: the two halves of graph attention's score.
template <class Array>
struct RankOne {
  static constexpr const char* kName = "rank_one";
  double negative_slope = 0.2;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("negative_slope", negative_slope);
  }
};

// The query is the row of scores: q [.., S].
template <class Array>
struct Location {
  static constexpr const char* kName = "location";
  template <class Visit>
  void fields(Visit&&) {}
};

// 1 for every pair.
template <class Array>
struct Constant {
  static constexpr const char* kName = "constant";
  template <class Visit>
  void fields(Visit&&) {}
};

// ---- modifiers ----------------------------------------------------------------------------------
//
// Applied to a score in the order given: relative positions first, then the soft cap, then the rest
// (another order is refused).
// i is the query's position among the keys: its row plus the call's query_offset (PerItem below).

// score + bias; any broadcast of [B, H, L, S], by row: row 0 is the first query given, whatever its
// position.
template <class Array>
struct Bias {
  static constexpr const char* kName = "bias";
  Array bias;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("bias", bias);
  }
};

// score - slope_h * |i - j| ; slopes [H].
template <class Array>
struct Alibi {
  static constexpr const char* kName = "alibi";
  Array slopes;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("slopes", slopes);
  }
};

// Shaw et al. 2018: q.(k + rK_c) * scale and sum a (v + rV_c), c = clip(j - i, -clip, clip).
// Tables [2 clip + 1, E] and [2 clip + 1, Ev]; either may be empty. On a dot score only.
template <class Array>
struct Relative {
  static constexpr const char* kName = "relative";
  Array key_table;
  Array value_table;
  int64_t clip = 0;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("key_table", key_table);
    visit("value_table", value_table);
    visit("clip", clip);
  }
};

// cap * tanh(score / cap).
template <class Array>
struct SoftCap {
  static constexpr const char* kName = "soft_cap";
  double cap = 0;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("cap", cap);
  }
};

// Where a run of scores lies: the query at position `query`, keys `key`, `key` + 1, ... of one head.
struct RowPosition {
  int64_t batch, head, query, key;
};

// A user's function of score and position, run on a row at a time: `value` replaces the scores;
// `derivative` multiplies `gradient` by d value / d score at `scores` (the scores before the
// function). Build one with fovea::elementwise.
template <class Array>
struct Custom {
  static constexpr const char* kName = "custom";
  void (*value_f32)(const void* context, float* scores, size_t n, RowPosition) = nullptr;
  void (*derivative_f32)(const void* context, const float* scores, float* gradient, size_t n,
                         RowPosition) = nullptr;
  void (*value_f64)(const void* context, double* scores, size_t n, RowPosition) = nullptr;
  void (*derivative_f64)(const void* context, const double* scores, double* gradient, size_t n,
                         RowPosition) = nullptr;
  const void* context = nullptr;
  template <class Visit>
  void fields(Visit&&) {}
};

template <class Array>
using Modifier =
    std::variant<Bias<Array>, Alibi<Array>, Relative<Array>, SoftCap<Array>, Custom<Array>>;

template <class Array>
struct Score {
  using Kind =
      std::variant<Dot<Array>, Bilinear<Array>, Additive<Array>, GatedAdditive<Array>,
                   Kernel<Array>, Cosine<Array>, RankOne<Array>, Location<Array>, Constant<Array>>;
  Kind kind = Dot<Array>{};
  std::vector<Modifier<Array>> modifiers;

  Score() = default;
  template <class T>
  requires std::is_constructible_v<Kind, T> Score(T value)
      : kind(std::move(value)) {}  // NOLINT: a score type is a score

  Score bias(Array b) && { return with(Bias<Array>{std::move(b)}); }
  Score alibi(Array slopes) && { return with(Alibi<Array>{std::move(slopes)}); }
  Score relative(Array key_table, Array value_table, int64_t clip) && {
    return with(Relative<Array>{std::move(key_table), std::move(value_table), clip});
  }
  Score soft_cap(double cap) && { return with(SoftCap<Array>{cap}); }
  Score custom(Custom<Array> function) && { return with(std::move(function)); }

 private:
  template <class M>
  Score with(M m) {
    modifiers.push_back(std::move(m));
    return std::move(*this);
  }
};

// ---- normalisers --------------------------------------------------------------------------------

// exp(e) / (sum exp(e) + exp(sink)); sink [1] or [H], or empty for none.
template <class Array>
struct Softmax {
  static constexpr const char* kName = "softmax";
  Array sink;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("sink", sink);
  }
};
// K / sum K. Signed kernels allowed.
template <class Array>
struct KernelRatio {
  static constexpr const char* kName = "kernel_ratio";
  template <class Visit>
  void fields(Visit&&) {}
};
// The score itself.
template <class Array>
struct Unnormalised {
  static constexpr const char* kName = "unnormalised";
  template <class Visit>
  void fields(Visit&&) {}
};
// 1 / (number of keys the query may see).
template <class Array>
struct Uniform {
  static constexpr const char* kName = "uniform";
  template <class Visit>
  void fields(Visit&&) {}
};
// 1 / (1 + exp(-e)), each pair on its own.
template <class Array>
struct Sigmoid {
  static constexpr const char* kName = "sigmoid";
  template <class Visit>
  void fields(Visit&&) {}
};
// The projection of e onto the simplex.
template <class Array>
struct Sparsemax {
  static constexpr const char* kName = "sparsemax";
  template <class Visit>
  void fields(Visit&&) {}
};
// alpha-entmax: max(0, (alpha-1) e - tau)^(1/(alpha-1)), alpha >= 1; 1 is the limit, softmax. As an
// array [1] or [H] alpha has a gradient, and below 1 counts as 1, in weights and gradients.
template <class Array>
struct Entmax {
  static constexpr const char* kName = "entmax";
  double alpha = 1.5;
  Array alpha_tensor;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("alpha", alpha);
    visit("alpha_tensor", alpha_tensor);
  }
};
// Softmax over the k largest scores; ties to the lower index; all keys where fewer than k are seen.
template <class Array>
struct TopK {
  static constexpr const char* kName = "top_k";
  int64_t k = 1;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("k", k);
  }
};
// One key: the largest score, or one drawn from the softmax. The log of its softmax probability is
// the lse output.
template <class Array>
struct Hard {
  static constexpr const char* kName = "hard";
  bool sample = false;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("sample", sample);
  }
};

template <class Array>
using Normaliser =
    std::variant<Softmax<Array>, KernelRatio<Array>, Unnormalised<Array>, Uniform<Array>,
                 Sigmoid<Array>, Sparsemax<Array>, Entmax<Array>, TopK<Array>, Hard<Array>>;

// ---- structures: query i may see key j ----------------------------------------------------------
// Causal, Window, Prefix, Strided and Fixed count positions: i is the row of the query plus the
// call's query_offset, so that a step under a cache sees what the same rows of the whole see.
// Documents, Blocks and Keep index arrays by the row of the query and know no offset: give them the
// arrays of the rows that are there.

// A whole number for every item of the batch, or one for each of them: int [B], or [1] for all.
template <class Array>
struct PerItem {
  int64_t number = 0;
  Array each{};  // where there, in place of the number

  PerItem() = default;
  PerItem(int64_t all) : number(all) {}                 // NOLINT: a number is one for all
  PerItem(Array numbers) : each(std::move(numbers)) {}  // NOLINT: so is an array
};

template <class Array>
struct Dense {
  static constexpr const char* kName = "dense";
  template <class Visit>
  void fields(Visit&&) {}
};
// j <= i. Top left: i counts from the call's query_offset, 0 where none is given. Bottom right: the
// last query stands at the last key, which is a query_offset of S - L (S the item's key length where
// lengths are given) for everything that counts positions in the call; another is refused.
template <class Array>
struct Causal {
  static constexpr const char* kName = "causal";
  Alignment alignment = Alignment::kTopLeft;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("alignment", alignment);
  }
};
// i - left <= j <= i + right; -1 is unbounded.
template <class Array>
struct Window {
  static constexpr const char* kName = "window";
  int64_t left = -1, right = -1;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("left", left);
    visit("right", right);
  }
};
// j <= i or j < length; lengths [B] (int32), where there, has one length for each item instead.
template <class Array>
struct Prefix {
  static constexpr const char* kName = "prefix";
  int64_t length = 0;
  Array lengths{};
  template <class Visit>
  void fields(Visit&& visit) {
    visit("length", length);
    visit("lengths", lengths);
  }
};
// Equal ids; int32 [L] or [B, L], and [S] or [B, S], by row.
template <class Array>
struct Documents {
  static constexpr const char* kName = "documents";
  Array query_ids, key_ids;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("query_ids", query_ids);
    visit("key_ids", key_ids);
  }
};
// Whole size x size blocks; mask bool, any broadcast of [B, H, ceil(L/size), ceil(S/size)], by row.
template <class Array>
struct Blocks {
  static constexpr const char* kName = "blocks";
  Array mask;
  int64_t size = 64;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("mask", mask);
    visit("size", size);
  }
};
// Where mask is true; bool, any broadcast of [B, H, L, S], by row.
template <class Array>
struct Keep {
  static constexpr const char* kName = "keep";
  Array mask;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("mask", mask);
  }
};
// Packed tensors (total, H, E); int32 offsets [B + 1].
template <class Array>
struct Ragged {
  static constexpr const char* kName = "ragged";
  Array query_offsets, key_offsets;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("query_offsets", query_offsets);
    visit("key_offsets", key_offsets);
  }
};
// Packed tensors (total, H, E); a row of the CSR lists the keys its query sees, in the order given.
// int32. One item: beside other structures and for modifiers row r has position r + query_offset.
template <class Array>
struct Graph {
  static constexpr const char* kName = "graph";
  Array row_offsets, columns;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("row_offsets", row_offsets);
    visit("columns", columns);
  }
};
// j <= i and (i - j <= stride or (i - j) mod stride = 0).
template <class Array>
struct Strided {
  static constexpr const char* kName = "strided";
  int64_t stride = 1;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("stride", stride);
  }
};
// j <= i and (floor(j / stride) = floor(i / stride) or j mod stride >= stride - summary).
template <class Array>
struct Fixed {
  static constexpr const char* kName = "fixed";
  int64_t stride = 1, summary = 1;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("stride", stride);
    visit("summary", summary);
  }
};

template <class Array>
using StructureKind = std::variant<Dense<Array>, Causal<Array>, Window<Array>, Prefix<Array>,
                                   Documents<Array>, Blocks<Array>, Keep<Array>, Ragged<Array>,
                                   Graph<Array>, Strided<Array>, Fixed<Array>>;

// One structure, or several that must all allow a pair.
template <class Array>
struct Structure {
  std::vector<StructureKind<Array>> all_of;

  Structure() = default;
  template <class T>
  requires std::is_constructible_v<StructureKind<Array>, T> Structure(T value) {
    all_of.emplace_back(std::move(value));
  }  // NOLINT: a structure type is a structure
};

// Causal{} & Window{.left = 8}: pairs that both allow. Kinds and structures in any mixture.
template <template <class> class A, template <class> class B, class Array>
requires(std::is_constructible_v<Structure<Array>, A<Array>>&&
             std::is_constructible_v<Structure<Array>, B<Array>>) Structure<Array>
operator&(const A<Array>& a, const B<Array>& b) {
  Structure<Array> both = a;
  const Structure<Array> other = b;
  both.all_of.insert(both.all_of.end(), other.all_of.begin(), other.all_of.end());
  return both;
}

}  // namespace fovea::choice
