// A set predictor over many items, in batches.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "systems/image_to_set/model.h"
#include "train/interrupt.h"

namespace fovea::systems::image_to_set {

// Calls visit(from, to, items) for the items at the positions from … to - 1.
template <class Visit>
void in_batches(const std::vector<int64_t>& items, size_t batch, Visit visit) {
  for (size_t from = 0; from < items.size(); from += batch) {
    train::stop_if_interrupted("while judging");
    const size_t to = std::min(items.size(), from + batch);
    visit(from, to, std::vector<int64_t>(&items[from], &items[from] + (to - from)));
  }
}

// Items, and how they are seen.
struct Seen {
  const std::vector<int64_t>& items;
  std::function<Memory(const std::vector<int64_t>& items)> see;
  size_t batch;
};
std::vector<LabelSet> named(SetPredictor& predictor, const Seen& seen);

// A feed-forward predictor's cut is tuned on these items, and kept with its weights.
void tune(SetPredictor& predictor, const Seen& seen, const std::vector<LabelSet>& truth);

}  // namespace fovea::systems::image_to_set
