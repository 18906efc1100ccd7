// Words in a plane, and their neighbours in a table.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "explain/explanation.h"

namespace fovea::systems::word2vec {

// A word and the cosine of its angle to what was asked for.
struct Neighbour {
  std::string word;
  double cosine;
};
struct Neighbourhood {
  std::string word;
  std::vector<Neighbour> nearest;
};

// "near 0.913", …: three to six decimals, as many as are needed to distinguish the cosines. Words
// that are used in the same way come within 0.001 of each other.
std::vector<std::string> in_words(const std::vector<Neighbour>& nearest, char between);

// `count` rows: the first ones, then each time the one least like those chosen. units [rows, width].
std::vector<size_t> unlike(const at::Tensor& units, size_t first, size_t count);

// vectors [words, width]; `nearest` are those of some of the words.
explain::Explanation plane_of_words(const std::vector<std::string>& words,
                                    const at::Tensor& vectors,
                                    const std::vector<Neighbourhood>& nearest);

}  // namespace fovea::systems::word2vec
