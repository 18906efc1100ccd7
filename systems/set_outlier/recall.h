// How well a ranking finds what was hidden.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace fovea::systems::set_outlier {

inline constexpr int64_t kRanked = 10;

// Ranks of the targets, and which were found near the top: over all, and averaged by thing, so that
// rare things count.
struct Recall {
  double found = 0, found_wide = 0, count = 0;
  std::vector<int64_t> ranks;
  std::map<int64_t, std::pair<double, double>> by_thing;

  void add(int64_t rank, int64_t thing) {
    found += rank <= kRanked;
    found_wide += rank <= 10 * kRanked;
    count += 1;
    ranks.push_back(rank);
    by_thing[thing].first += rank <= kRanked;
    by_thing[thing].second += 1;
  }
  double share() const { return count > 0 ? found / count : 0; }
  double share_wide() const { return count > 0 ? found_wide / count : 0; }
  double by_thing_share() const {
    double sum = 0;
    for (const auto& [thing, tally] : by_thing) sum += tally.first / tally.second;
    return by_thing.empty() ? 0 : sum / static_cast<double>(by_thing.size());
  }
  double median() {
    if (ranks.empty()) return 0;
    std::nth_element(ranks.begin(), ranks.begin() + static_cast<int64_t>(ranks.size() / 2),
                     ranks.end());
    return static_cast<double>(ranks[ranks.size() / 2]);
  }
};

}  // namespace fovea::systems::set_outlier
