#include "cli/verbs.h"

namespace fovea::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = {};
  return table;
}

}  // namespace fovea::cli
