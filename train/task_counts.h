// Counts of answers, by task and in all: errors, failed tasks, and whether attention found what the
// answer depends on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/types.h"

namespace fovea::train {

class TaskCounts {
 public:
  explicit TaskCounts(std::vector<std::string> tasks) : tasks_(std::move(tasks)) {}

  enum class Support { kUnknown, kMissed, kFound };
  void add(size_t task, bool right, Support support);

  // accuracy of all; error, the mean of the tasks' errors; with several tasks error_NAME of each
  // and failed_tasks, those above 5 %. hit_rate: of the answers whose support is known, and
  // hit_rate_right of the right ones among them.
  Evaluation figures() const;

 private:
  struct Counts {
    double asked = 0, right = 0, known = 0, found = 0, known_right = 0, found_right = 0;
  };
  const std::vector<std::string> tasks_;
  std::map<size_t, Counts> of_;
};

}  // namespace fovea::train
