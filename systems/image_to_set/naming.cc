#include "systems/image_to_set/naming.h"

namespace fovea::systems::image_to_set {

std::vector<LabelSet> named(SetPredictor& predictor, const Seen& seen) {
  std::vector<LabelSet> out;
  in_batches(seen.items, seen.batch, [&](size_t, size_t, const std::vector<int64_t>& items) {
    for (Named& one : predictor.name(seen.see(items))) out.push_back(std::move(one.labels));
  });
  return out;
}

void tune(SetPredictor& predictor, const Seen& seen, const std::vector<LabelSet>& truth) {
  if (predictor.predictor().steps()) return;
  std::vector<Scored> scored;
  in_batches(seen.items, seen.batch, [&](size_t, size_t, const std::vector<int64_t>& items) {
    for (Scored& one : predictor.scored(seen.see(items))) scored.push_back(std::move(one));
  });
  predictor.set_cut(tuned(scored, truth, predictor.rule(), predictor.bounds()));
}

}  // namespace fovea::systems::image_to_set
