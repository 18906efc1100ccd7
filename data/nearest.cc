#include "data/nearest.h"

#include <algorithm>
#include <utility>

namespace fovea::data {

size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table are enough: a swap looks two back.
  std::vector<size_t> two_back(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) current[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_back, previous);
    std::swap(previous, current);
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], two_back[j - 2] + 1);
      }
    }
  }
  return current[b.size()];
}

std::string nearest(std::string_view typed, const std::vector<std::string>& names) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, typed.size() / 3) + 1;
  for (const std::string& name : names) {
    const bool begun = typed.size() >= 2 && name.starts_with(typed);
    const size_t distance = begun ? 1 : edit_distance(typed, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::string name = nearest(word, names);
  return name.empty() ? "" : " (did you mean '" + name + "'?)";
}

}  // namespace fovea::data
