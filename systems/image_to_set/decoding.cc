#include "systems/image_to_set/decoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace fovea::systems::image_to_set {
namespace {

LabelSet by_probability(const std::vector<float>& p) {
  LabelSet out(p.size());
  std::iota(out.begin(), out.end(), 0);
  std::stable_sort(out.begin(), out.end(), [&](int64_t a, int64_t b) {
    return p[static_cast<size_t>(a)] > p[static_cast<size_t>(b)];
  });
  return out;
}

size_t by_threshold(const Scored& scored, const LabelSet& order, double threshold) {
  size_t count = 0;
  while (count < order.size() && scored.labels[static_cast<size_t>(order[count])] > threshold)
    ++count;
  return count;
}

size_t by_mass(const Scored& scored, const LabelSet& order, const Cut& cut) {
  if (order.empty() || scored.labels[static_cast<size_t>(order.front())] < cut.floor) return 0;
  size_t count = 0;
  for (double mass = 0; count < order.size() && mass < cut.threshold; ++count)
    mass += scored.labels[static_cast<size_t>(order[count])];
  return count;
}

// `gain` is what the i-th likeliest label adds.
template <class Gain>
size_t by_size(const Scored& scored, const Bounds& bounds, Gain gain) {
  size_t best = 0;
  double sum = 0, largest = -std::numeric_limits<double>::infinity();
  for (size_t size = 0; size < scored.log_sizes.size() && size <= scored.labels.size(); ++size) {
    if (size > 0) sum += gain(size - 1);
    if (size == 0 && !bounds.may_be_empty) continue;
    if (scored.log_sizes[size] + sum > largest) {
      largest = scored.log_sizes[size] + sum;
      best = size;
    }
  }
  return best;
}

size_t count_of(const Scored& scored, const LabelSet& order, Rule rule, const Cut& cut,
                const Bounds& bounds) {
  switch (rule) {
    case Rule::kThreshold:
      return by_threshold(scored, order, cut.threshold);
    case Rule::kMass:
      return by_mass(scored, order, cut);
    case Rule::kSize:
      return by_size(scored, bounds, [](size_t) { return 0.0; });
    case Rule::kJoint:
      return by_size(scored, bounds, [&](size_t i) {
        const double p = scored.labels[static_cast<size_t>(order[i])];
        return std::log(std::max(p, 1e-12) / cut.threshold);
      });
  }
  return 0;
}

double f1_of(const std::vector<Scored>& scored, const std::vector<LabelSet>& truth, Rule rule,
             const Cut& cut, const Bounds& bounds) {
  std::vector<LabelSet> sets;
  for (const Scored& one : scored) sets.push_back(chosen(one, rule, cut, bounds));
  const double f1 =
      metrics::set_scores(sets, truth, static_cast<int64_t>(scored.front().labels.size())).f1;
  return std::isnan(f1) ? 0 : f1;
}

}  // namespace

LabelSet chosen(const Scored& scored, Rule rule, const Cut& cut, const Bounds& bounds) {
  LabelSet order = by_probability(scored.labels);
  size_t count = std::min(count_of(scored, order, rule, cut, bounds),
                          static_cast<size_t>(std::max<int64_t>(0, bounds.largest)));
  if (count == 0 && !bounds.may_be_empty) count = 1;
  order.resize(std::min(count, order.size()));
  return order;
}

Cut tuned(const std::vector<Scored>& scored, const std::vector<LabelSet>& truth, Rule rule,
          const Bounds& bounds) {
  Cut best;
  if (scored.empty() || rule == Rule::kSize) return best;
  const double even = 1 / static_cast<double>(std::max<size_t>(1, scored.front().labels.size()));
  std::vector<double> floors = {0};
  if (rule == Rule::kMass && bounds.may_be_empty) floors = {0, 1.25 * even, 1.5 * even, 2 * even};
  double largest = -1;
  for (const double floor : floors)
    for (int step = 1; step < 40; ++step) {
      const Cut cut{.threshold = step / 40.0, .floor = floor};
      const double f1 = f1_of(scored, truth, rule, cut, bounds);
      if (f1 <= largest) continue;
      largest = f1;
      best = cut;
    }
  return best;
}

LabelSet most_frequent(const std::vector<LabelSet>& training, const std::vector<LabelSet>& truth,
                       int64_t labels) {
  Scored counts{.labels = std::vector<float>(static_cast<size_t>(labels))};
  for (const LabelSet& set : training)
    for (const int64_t label : set) counts.labels[static_cast<size_t>(label)] += 1;
  std::vector<double> wanted(static_cast<size_t>(labels));
  double total = 0;
  for (const LabelSet& set : truth)
    for (const int64_t label : set) {
      wanted[static_cast<size_t>(label)] += 1;
      total += 1;
    }
  LabelSet order = by_probability(counts.labels);
  size_t best = 0;
  double both = 0, largest = 0;
  for (size_t k = 1; k <= order.size(); ++k) {
    both += wanted[static_cast<size_t>(order[k - 1])];
    const double f1 = 2 * both / (static_cast<double>(k * truth.size()) + total);
    if (!(f1 > largest)) continue;
    largest = f1;
    best = k;
  }
  order.resize(best);
  return order;
}

}  // namespace fovea::systems::image_to_set
