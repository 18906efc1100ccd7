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

  // named_in_set: the share of recipes that name no ingredient outside of their list. told: the share
  // of listed ingredients that are named. hit_rate: a word that names a listed ingredient counts if its
  // largest weight within the list lies on this one. Also the share of attention that lies on the
  // picture, for these words and for the colours of plates.
  void put(Evaluation& out, const std::string& ending) const;

 private:
  const std::vector<std::string>& names_;
  double recipes_ = 0, all_in_ = 0, told_ = 0, listed_ = 0;
  double words_ = 0, hits_ = 0, on_picture_ = 0, plates_ = 0, plates_on_picture_ = 0;
};

}  // namespace fovea::systems::inverse_cooking
