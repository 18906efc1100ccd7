#include "data/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "data/random.h"
#include "fovea/error.h"

namespace fovea::data {
namespace {

using Items = std::vector<int64_t>;

void check(int64_t items, const Items& lengths, const BatchPlan& plan) {
  if (!lengths.empty() && static_cast<int64_t>(lengths.size()) != items)
    throw InvalidArgument(fmt::format("lengths: {} given, expected {}", lengths.size(), items));
  if (plan.items < 1)
    throw InvalidArgument(fmt::format("batch: {} items, expected at least 1", plan.items));
  if (plan.tokens > 0 && lengths.empty() && items > 0)
    throw InvalidArgument("batch_tokens: this system's items have no lengths");
}

// Ends a batch where the next item would make it too large.
std::vector<Items> cut(const Items& order, const Items& lengths, const BatchPlan& plan) {
  std::vector<Items> out;
  int64_t tokens = 0;
  for (const int64_t item : order) {
    const int64_t length = lengths.empty() ? 1 : lengths[static_cast<size_t>(item)];
    const bool full =
        !out.empty() && (plan.tokens > 0 ? tokens + length > plan.tokens
                                         : static_cast<int64_t>(out.back().size()) >= plan.items);
    if (out.empty() || full) {
      out.emplace_back();
      tokens = 0;
    }
    out.back().push_back(item);
    tokens += length;
  }
  return out;
}

}  // namespace

std::vector<Items> batches(int64_t items, const Items& lengths, const BatchPlan& plan) {
  check(items, lengths, plan);
  Items order(static_cast<size_t>(items));
  std::iota(order.begin(), order.end(), 0);
  Random random(plan.seed);
  random.shuffle(order);
  if (lengths.empty()) return cut(order, lengths, plan);
  // A pool has the items of a hundred batches: enough that lengths match, and few enough that
  // batches differ from epoch to epoch.
  const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const int64_t mean = std::max<int64_t>(1, total / std::max<int64_t>(1, items));
  const int64_t held = plan.tokens > 0 ? std::max<int64_t>(1, plan.tokens / mean) : plan.items;
  const auto pool = static_cast<size_t>(100 * held);
  for (size_t start = 0; start < order.size(); start += pool) {
    const size_t end = std::min(order.size(), start + pool);
    std::stable_sort(order.begin() + static_cast<ptrdiff_t>(start),
                     order.begin() + static_cast<ptrdiff_t>(end), [&](int64_t a, int64_t b) {
                       return lengths[static_cast<size_t>(a)] < lengths[static_cast<size_t>(b)];
                     });
  }
  std::vector<Items> out = cut(order, lengths, plan);
  random.shuffle(out);
  return out;
}

std::vector<Items> ordered_batches(int64_t items, const Items& lengths, const BatchPlan& plan) {
  check(items, lengths, plan);
  Items order(static_cast<size_t>(items));
  std::iota(order.begin(), order.end(), 0);
  if (!lengths.empty())
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return lengths[static_cast<size_t>(a)] < lengths[static_cast<size_t>(b)];
    });
  return cut(order, lengths, plan);
}

}  // namespace fovea::data
