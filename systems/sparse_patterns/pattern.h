// Sparse patterns (Child et al. 2019): which earlier positions a position sees.
//
//   strided   {i − l … i}          and  {j : (i − j) mod l = 0}
//   fixed     {j : ⌊j/l⌋ = ⌊i/l⌋}    and  {j : j mod l ≥ l − c}, and i
//   local     {i − l … i}
//   block     own block of l and the one before,  and  {j < g}, and i
//   dense     all
//
// all with j ≤ i. Every position sees itself in each part.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "train/named.h"

namespace fovea::systems::sparse_patterns {

enum class Kind { kDense, kStrided, kFixed, kLocal, kBlock };
inline constexpr Named<Kind, 5> kKinds{{{"dense", Kind::kDense},
                                        {"strided", Kind::kStrided},
                                        {"fixed", Kind::kFixed},
                                        {"local", Kind::kLocal},
                                        {"block", Kind::kBlock}}};
enum class Part { kWhole, kFirst, kSecond };  // the union of both, or one of them

struct Pattern {
  Kind kind = Kind::kStrided;
  int64_t stride = 14;  // l
  int64_t summary = 1;  // c, at most l
  int64_t global = 1;   // g
};

// The definition: whether position i sees position j.
bool allows(const Pattern& pattern, Part part, int64_t i, int64_t j);
std::vector<int64_t> keys_of(const Pattern& pattern, Part part, int64_t i);
torch::Tensor mask_of(const Pattern& pattern, Part part, int64_t n);  // bool [n, n]
int64_t pairs_of(const Pattern& pattern, Part part, int64_t n);

// softmax(q·k/√E) v over the pairs of the pattern: [B, H, n, E]. No pair outside of it is computed
// but those in tiles at its edge.
torch::Tensor attend_pattern(const torch::Tensor& query, const torch::Tensor& key,
                             const torch::Tensor& value, const Pattern& pattern, Part part);

// How the two parts come together in a model.
enum class Combination {
  kMerge,      // each head sees both
  kAlternate,  // layers in turn
  kHeads,      // the first half of the heads sees the first part, the others the second
};
inline constexpr Named<Combination, 3> kCombinations{{{"merge", Combination::kMerge},
                                                      {"alternate", Combination::kAlternate},
                                                      {"heads", Combination::kHeads}}};
Part part_of(Combination combination, int64_t layer, int64_t head, int64_t heads);

}  // namespace fovea::systems::sparse_patterns
