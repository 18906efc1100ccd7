// Where the blank looks, and which words may fill it.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "explain/explanation.h"

namespace fovea::systems::next_word {

struct Shown {
  std::vector<std::string> tokens;  // read so far, the first is the beginning
  torch::Tensor weights;            // [layers, heads, tokens, tokens]
  torch::Tensor layers;             // [layers, vocabulary]: scores of the next token by layer
  std::vector<std::string> pieces;  // of the vocabulary
  int64_t decides = -1;             // the token that decides; -1: not known
  std::string scale;
};
std::vector<explain::Explanation> pictures(const Shown& shown);

}  // namespace fovea::systems::next_word
