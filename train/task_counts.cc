#include "train/task_counts.h"

namespace fovea::train {
namespace {

constexpr double kFailed = 0.05;

}  // namespace

void TaskCounts::add(size_t task, bool right, Support support) {
  Counts& c = of_[task];
  const bool known = support != Support::kUnknown, found = support == Support::kFound;
  c.asked += 1;
  c.right += right;
  c.known += known;
  c.found += found;
  c.known_right += known && right;
  c.found_right += found && right;
}

Evaluation TaskCounts::figures() const {
  Evaluation out;
  Counts all;
  double errors = 0, failed = 0;
  const auto put_hits = [&](const Counts& c, const std::string& name) {
    if (c.known > 0) out.attention["hit_rate" + name] = c.found / c.known;
    if (c.known_right > 0) out.attention["hit_rate_right" + name] = c.found_right / c.known_right;
  };
  for (const auto& [task, c] : of_) {
    all.asked += c.asked;
    all.right += c.right;
    all.known += c.known;
    all.found += c.found;
    all.known_right += c.known_right;
    all.found_right += c.found_right;
    const double error = 1 - c.right / c.asked;
    errors += error;
    failed += error > kFailed;
    if (tasks_.size() == 1) continue;
    out.metrics["error_" + tasks_[task]] = error;
    put_hits(c, "_" + tasks_[task]);
  }
  out.items = static_cast<int64_t>(all.asked);
  if (of_.empty()) {
    out.notes.push_back("no items to evaluate, so no figures");
    return out;
  }
  out.metrics["accuracy"] = all.right / all.asked;
  out.metrics["error"] = errors / static_cast<double>(of_.size());
  if (tasks_.size() > 1) out.metrics["failed_tasks"] = failed;
  put_hits(all, "");
  return out;
}

}  // namespace fovea::train
