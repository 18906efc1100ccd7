// Which tags a set lacks, with z and without it.
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"
#include "systems/deep_sets/tag_model.h"

namespace fovea::systems::deep_sets {

struct ShownTags {
  Ids given, hidden;          // hidden: empty where it is not known
  std::vector<float> z;       // as it was given
  std::vector<float> with_z;  // shares of all tags; empty without z
  std::vector<float> alone;   // the same by the model that sees the set alone
};

explain::Explanation missing_tags(const ShownTags& shown, const std::vector<std::string>& names);

}  // namespace fovea::systems::deep_sets
