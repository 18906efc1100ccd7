// From probabilities of labels to a set: by a threshold, by mass, by size.
#pragma once

#include <cstdint>
#include <vector>

#include "metrics/sets.h"

namespace fovea::systems::image_to_set {

using metrics::LabelSet;

enum class Rule : uint8_t {
  kThreshold,  // labels above the threshold
  kMass,       // the likeliest until their probabilities add up to the threshold
  kSize,       // as many of the likeliest as the likeliest size says
  kJoint,  // the size K with the largest log p(K) + sum over the K likeliest of log(p / threshold)
};

// What one item's choice rests on.
struct Scored {
  std::vector<float> labels;          // probability of each
  std::vector<float> log_sizes = {};  // of the sizes 0, 1, …; kSize and kJoint
};

// Tuned on the validation items.
struct Cut {
  double threshold = 0.5;
  double floor = 0;  // kMass: if no label is as likely, the set is empty
};

struct Bounds {
  int64_t largest = 0;       // of a set
  bool may_be_empty = true;  // if not, the likeliest label is in every set
};

// The labels in falling order of probability, ties in order of their numbers.
LabelSet chosen(const Scored& scored, Rule rule, const Cut& cut, const Bounds& bounds);

// The cut with the largest overall F1; the first of equals. kSize has none to tune.
Cut tuned(const std::vector<Scored>& scored, const std::vector<LabelSet>& truth, Rule rule,
          const Bounds& bounds);

// The k labels that are most frequent in the training, for every item: k has the largest F1 on `truth`.
LabelSet most_frequent(const std::vector<LabelSet>& training, const std::vector<LabelSet>& truth,
                       int64_t labels);

}  // namespace fovea::systems::image_to_set
