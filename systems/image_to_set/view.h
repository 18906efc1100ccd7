// Where each label of a set was seen; which labels come together; how large the sets are.
#pragma once

#include <string>
#include <vector>

#include "data/captions/box.h"
#include "data/pictures/image.h"
#include "explain/explanation.h"
#include "systems/image_to_set/model.h"

namespace fovea::systems::image_to_set {

struct ShownSet {
  std::string name;
  data::Image image;  // in three colours; of no pixels where there is none
  int64_t regions = 0;
  int64_t grid = 0;                 // regions are grid x grid; 0: in a row
  bool pools_by_mean = false;       // every region counts the same
  std::vector<std::string> labels;  // predicted
  std::vector<float> probabilities;
  bool is_known = false;
  std::vector<std::string> expected;  // where it is known
  std::vector<std::pair<std::string, data::Box>> boxes = {};
  std::vector<torch::Tensor> weights = {};  // of each layer [heads, labels, regions]
};

// Whether the middle of a region lies in a box.
bool lies_in(int64_t region, int64_t grid, const data::Box& box);

explain::Explanation picture(const ShownSet& shown);

struct JudgedSets {
  std::vector<std::string> names;  // of the labels
  std::vector<LabelSet> predicted, truth;
};
// P(column | row) in the truth and in the predictions; and true sizes against predicted ones.
std::vector<explain::Explanation> statistics(const JudgedSets& judged);

}  // namespace fovea::systems::image_to_set
