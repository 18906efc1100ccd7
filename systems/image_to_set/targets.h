// What a set predictor is taught and judged by: the labels that it may predict, and each item's set of
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/split.h"
#include "systems/image_to_set/labels.h"
#include "train/fields.h"
#include "train/types.h"

namespace fovea::systems::image_to_set {

class Targets {
 public:
  using Names = std::vector<std::vector<std::string>>;  // of the labels of each item

  // Takes the `most` commonest labels of the training items, and encodes all items.
  void choose(const Names& names, const data::Splits& splits, int64_t most);
  // The sets of other items, by the labels chosen before.
  void encode(const Names& names);

  // What a run keeps; the list of labels is called `list`.
  Json facts(const char* list) const;
  void restore(const train::Fields& facts, const char* list);

  const Labels& labels() const { return labels_; }
  int64_t largest() const { return largest_; }  // set of the training
  const LabelSet& of(int64_t item) const { return sets_[static_cast<size_t>(item)]; }
  std::vector<LabelSet> of(const std::vector<int64_t>& items) const {
    return gathered(sets_, items);
  }

  // The figures of sets predicted for these items, and of the simplest guess, which says the most
  // frequent labels of every item. `labels_of_items` is for the note on those that are not predicted:
  // "labels of these pictures".
  void add_scores(Evaluation& out, const std::vector<LabelSet>& predicted,
                  const std::vector<int64_t>& items, const char* labels_of_items) const;

 private:
  Labels labels_;
  std::vector<LabelSet> sets_;    // of each item
  std::vector<int64_t> unknown_;  // labels of each item that are not predicted
  LabelSet frequent_;             // the simplest guess
  int64_t largest_ = 0;
};

}  // namespace fovea::systems::image_to_set
