// The weights of a BertModel by the names that Hugging Face gives them.
#pragma once

#include <string>
#include <vector>

#include "systems/bert/model.h"

namespace fovea::systems::bert {

// One weight of ours; several of theirs are its parts, one below another.
struct WeightName {
  std::string ours;
  std::vector<std::string> theirs;
};

// `prefix` stands before the names of the encoder and the pooler: "bert." or nothing.
std::vector<WeightName> encoder_names(const nn::BertOptions& sizes, const std::string& prefix);
struct HeadNames {
  std::vector<WeightName> pooler, fill, next, classifier, span;
};
HeadNames head_names(const std::string& prefix);
// Those of the heads that are wanted.
std::vector<WeightName> names_of(const HeadsWanted& heads, const std::string& prefix);

}  // namespace fovea::systems::bert
