#include "systems/bert/masking.h"

#include <algorithm>
#include <cmath>

namespace fovea::systems::bert {

Masked masked(const std::vector<int64_t>& ids, const text::WordPiece& pieces, double share,
              data::Random& random) {
  Masked out{.ids = ids, .places = {}, .labels = {}};
  std::vector<int64_t> candidates;
  for (size_t i = 0; i < ids.size(); ++i)
    if (!pieces.is_special(ids[i])) candidates.push_back(static_cast<int64_t>(i));
  if (candidates.empty()) return out;
  const auto wanted = static_cast<size_t>(
      std::max<int64_t>(1, std::llround(share * static_cast<double>(candidates.size()))));
  for (size_t i = 0; i < wanted; ++i)
    std::swap(candidates[i], candidates[i + random.below(candidates.size() - i)]);
  candidates.resize(wanted);
  std::sort(candidates.begin(), candidates.end());
  const int64_t mask = pieces.number("[MASK]");
  for (const int64_t place : candidates) {
    int64_t& id = out.ids[static_cast<size_t>(place)];
    out.places.push_back(place);
    out.labels.push_back(id);
    const uint64_t turn = random.below(10);
    if (turn < 8) {
      id = mask;
    } else if (turn == 8) {
      // One that is not special exists: the one that stood here.
      do id = static_cast<int64_t>(random.below(static_cast<uint64_t>(pieces.size())));
      while (pieces.is_special(id));
    }
  }
  return out;
}

}  // namespace fovea::systems::bert
