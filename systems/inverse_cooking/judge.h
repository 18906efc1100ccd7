// What written recipes say: which ingredients they name, and where the words look that name them.
#pragma once

#include <string>
#include <vector>

#include "systems/inverse_cooking/codec.h"
#include "systems/inverse_cooking/writer.h"
#include "train/types.h"

namespace fovea::systems::inverse_cooking {

class WordJudge {
 public:
  explicit WordJudge(const std::vector<std::string>& names) : names_(names) {}

  // A recipe written from these ingredients.
  void add(const std::vector<std::string>& words, const LabelSet& set);
  // The weights of its words, [words, regions + ingredients], of which so many are regions.
  void add_weights(const std::vector<std::string>& words, const LabelSet& set,
                   const torch::Tensor& weights, int64_t regions);

  // named_in_set: the share of recipes in which every ingredient that is named is one of theirs; told:
  // the share of their ingredients that are named. hit_rate: of words that name one of them, those whose
  // largest weight within the list lies on it; and how much of the attention of these words, and of the
  // plates' colours, lies on the picture.
  void put(Evaluation& out, const std::string& ending) const;

 private:
  const std::vector<std::string>& names_;
  double recipes_ = 0, all_in_ = 0, told_ = 0, listed_ = 0;
  double words_ = 0, hits_ = 0, on_picture_ = 0, plates_ = 0, plates_on_picture_ = 0;
};

}  // namespace fovea::systems::inverse_cooking
