// How well sets of labels are predicted: F1 overall and by class, intersection over union, sizes.
#pragma once

#include <cstdint>
#include <vector>

namespace fovea::metrics {

using LabelSet = std::vector<int64_t>;  // each label once, in any order

struct SetScores {
  double f1 = 0;        // 2 tp / (2 tp + fp + fn) over all items; NaN: no label anywhere
  double class_f1 = 0;  // mean over the classes that occur, in truth or prediction; NaN: none does
  int64_t absent_classes = 0;  // the others
  double iou = 0;              // mean over items; of two empty sets 1
  double exact = 0;            // share of items whose set is right
  double size_error = 0;       // mean difference of sizes, without its sign
};

// As many sets of each kind, labels from 0 to classes - 1; otherwise InvalidArgument. No items: all
// NaN.
SetScores set_scores(const std::vector<LabelSet>& predicted, const std::vector<LabelSet>& truth,
                     int64_t classes);

}  // namespace fovea::metrics
