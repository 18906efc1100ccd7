// Names of labels and their numbers, and the figures of predicted sets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "metrics/sets.h"
#include "train/types.h"

namespace fovea::systems::image_to_set {

using metrics::LabelSet;

class Labels {
 public:
  Labels() = default;
  // By falling count in these sets, ties in byte order; the `most` commonest. InvalidArgument: none.
  Labels(const std::vector<std::vector<std::string>>& sets, int64_t most);
  explicit Labels(std::vector<std::string> names);

  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  const std::vector<std::string>& names() const { return names_; }
  std::vector<std::string> names_of(const LabelSet& set) const;

  struct Known {
    LabelSet set;         // ascending, so in order of their counts
    int64_t unknown = 0;  // names that are not in the list
  };
  Known of(const std::vector<std::string>& names) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, int64_t, std::less<>> numbers_;
};

// f1, class_f1, iou, exact, size_error; a note where classes were skipped.
void add_scores(Evaluation& out, const std::vector<LabelSet>& predicted,
                const std::vector<LabelSet>& truth, const Labels& labels);

template <class Item>
std::vector<Item> gathered(const std::vector<Item>& from, const std::vector<int64_t>& which) {
  std::vector<Item> out;
  for (const int64_t i : which) out.push_back(from[static_cast<size_t>(i)]);
  return out;
}

}  // namespace fovea::systems::image_to_set
