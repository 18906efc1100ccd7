#include "cli/verbs/verbs.h"

namespace fovea::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = {
      list_verb(),    generate_verb(), train_verb(),  evaluate_verb(),
      predict_verb(), explain_verb(),  serve_verb(),  export_verb(),
      runs_verb(),    compare_verb(),  curves_verb(), tour_verb(),
      attend_verb(),  cuda_verb(),     score_verb(),  completion_verb(),
#ifdef FOVEA_BENCH
      bench_verb(),
#endif
  };
  return table;
}

}  // namespace fovea::cli
