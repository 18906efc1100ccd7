#include "systems/image_to_set/targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "systems/image_to_set/decoding.h"

namespace fovea::systems::image_to_set {

void Targets::choose(const Names& names, const data::Splits& splits, int64_t most) {
  labels_ = Labels(gathered(names, splits.train), most);
  encode(names);
  const std::vector<LabelSet> training = of(splits.train);
  for (const LabelSet& set : training)
    largest_ = std::max(largest_, static_cast<int64_t>(set.size()));
  frequent_ = most_frequent(training, splits.validation.empty() ? training : of(splits.validation),
                            labels_.size());
}

void Targets::encode(const Names& names) {
  sets_.clear();
  unknown_.clear();
  for (const auto& one : names) {
    const Labels::Known known = labels_.of(one);
    sets_.push_back(known.set);
    unknown_.push_back(known.unknown);
  }
}

Json Targets::facts(const char* list) const {
  return {{list, labels_.names()}, {"largest", largest_}, {"frequent", frequent_.size()}};
}

void Targets::restore(const train::Fields& facts, const char* list) {
  labels_ = Labels(facts.texts(list));
  largest_ = facts.integer("largest", 0, labels_.size());
  frequent_.resize(static_cast<size_t>(facts.integer("frequent", 0, labels_.size())));
  std::iota(frequent_.begin(), frequent_.end(), 0);  // labels are in order of their counts
}

void Targets::add_scores(Evaluation& out, const std::vector<LabelSet>& predicted,
                         const std::vector<int64_t>& items, const char* labels_of_items) const {
  const std::vector<LabelSet> truth = of(items);
  image_to_set::add_scores(out, predicted, truth, labels_);
  out.put("frequent_f1",
          metrics::set_scores(std::vector<LabelSet>(truth.size(), frequent_), truth, labels_.size())
              .f1);
  int64_t unknown = 0;
  for (const int64_t i : items) unknown += unknown_[static_cast<size_t>(i)];
  if (unknown > 0)
    out.notes.push_back(fmt::format("{} {} are none of the {} and are left out", unknown,
                                    labels_of_items, labels_.size()));
}

}  // namespace fovea::systems::image_to_set
