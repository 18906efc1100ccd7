// Where each head looks, and each question by the head that answers it.
#pragma once

#include <torch/types.h>

#include <array>
#include <string>
#include <vector>

#include "explain/explanation.h"
#include "systems/multi_head/sentences.h"

namespace fovea::systems::multi_head {

struct Shown {
  const Sentence& sentence;
  torch::Tensor weights;         // [heads, words]
  std::array<int64_t, 3> heads;  // of each question
  std::string outcome, mix, scale;
};
std::vector<explain::Explanation> pictures(const Shown& shown);

}  // namespace fovea::systems::multi_head
