// The verbs of the command line: `fovea NAME [options]`.
//
// To add one: write cli/verbs/NAME.cc that defines `Verb NAME_verb()`, declare it below, add it to
// the table in verbs.cc (--help has the same order) and to the sources in CMakeLists.txt. A verb
// parses, calls and prints; the work is done in a library.
//
//   Verb list_verb() {
//     return {"list", "all systems: paper, choices, data formats, figures", "fovea list --json",
//     [](CLI::App& app) {
//       auto options = std::make_shared<Options>();
//       app.add_flag("--json", options->json, "print one JSON object");
//       return [options] { return run(*options); };
//     }};
//   }
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/usage_error.h"

namespace CLI {
class App;
}

namespace fovea::cli {

// 75 is EX_TEMPFAIL of sysexits.h: another rank was lost, and trying again may help.
enum ExitCode { kDone = 0, kFailed = 1, kWrongUsage = 2, kRankLost = 75 };

// Throw this for a mistake in the command line: one line, exit code 2. Any other exception is exit
// code 1.
using fovea::UsageError;

struct Verb {
  std::string name;
  std::string summary;  // one line, for `fovea --help`
  std::string example;  // one command a line, each of which works as it stands; shown by `fovea
                        // NAME --help` and run by a test
  // Declares the options on `app`, and returns the function to call after they are parsed. That
  // function returns an exit code.
  std::function<std::function<int()>(CLI::App& app)> declare;
};

Verb list_verb();
Verb generate_verb();
Verb bench_verb();
Verb train_verb();
Verb evaluate_verb();
Verb predict_verb();
Verb explain_verb();
Verb export_verb();
Verb compare_verb();
Verb completion_verb();
Verb curves_verb();
Verb runs_verb();
Verb attend_verb();
Verb cuda_verb();
Verb tour_verb();
Verb score_verb();
Verb serve_verb();

// Every verb, in the order of --help.
const std::vector<Verb>& verbs();

}  // namespace fovea::cli
