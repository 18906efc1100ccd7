// The picture with what was looked at for each word.
#pragma once

#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

#include "data/captions/box.h"
#include "data/pictures/image.h"
#include "explain/explanation.h"
#include "systems/show_attend_tell/model.h"

namespace fovea::systems::show_attend_tell {

struct Shown {
  std::string name;
  std::vector<std::string> words;  // as told, without the end
  double log_probability = 0;
  std::vector<std::string> references = {};
  torch::Tensor weights = {};  // [words, regions]
  torch::Tensor gates = {};    // β of each word
  data::Image picture = {};    // of no pixels: there is none
  std::vector<std::pair<std::string, data::Box>> boxes = {};
};

explain::Explanation picture(const Shown& shown, const Shape& shape);

}  // namespace fovea::systems::show_attend_tell
