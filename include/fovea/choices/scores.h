// How well a query and a key fit: one number for each pair.
// q [.., E] is a query row, k [.., E] a key row of one head.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fovea/choices/modifiers.h"

namespace fovea::choice {

enum class Activation : uint8_t { kTanh, kLeakyRelu };

// The kernels of Nadaraya-Watson regression, K(u) with u = |D(q - k)| / h.
enum class KernelName : uint8_t {
  kGaussian,  // to kCauchy: infinite support
  kLaplace,
  kLogistic,
  kSigmoid,
  kSilverman,
  kCauchy,
  kBox,  // to kCosine: zero for u > 1
  kTriangular,
  kEpanechnikov,
  kQuartic,
  kTriweight,
  kTricube,
  kCosine,
};

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

// w' f(q + k) of projected queries and keys; weight [E] or [H, E]. With the leaky ReLU (slope 0.2)
// it is GATv2's score.
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

// w' (tanh(a) * sigmoid(b)) with [a; b] = q + k, the two halves of width E/2;
// weight [E/2] or [H, E/2].
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

// LeakyReLU(q + k), query and key of width 1: the two summands of graph attention's score.
template <class Array>
struct RankOne {
  static constexpr const char* kName = "rank_one";
  double negative_slope = 0.2;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("negative_slope", negative_slope);
  }
};

// The query is its row of scores: q [.., S].
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

// A kind of score, and its modifiers in the order of the chain.
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
  Score edge_bias(Array b) && { return with(EdgeBias<Array>{std::move(b)}); }
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

}  // namespace fovea::choice
