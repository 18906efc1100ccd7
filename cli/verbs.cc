#include "cli/verbs.h"

namespace fovea::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = {
      list_verb(), train_verb(), evaluate_verb(), predict_verb(), explain_verb(), attend_verb(),
  };
  return table;
}

}  // namespace fovea::cli
