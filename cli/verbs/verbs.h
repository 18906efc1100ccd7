// The verbs of the command line: `fovea NAME [options]`.
//
// To add one: write cli/verbs/NAME.cc that defines `Verb NAME_verb()`, declare it below, add it to
// the table in verbs.cc (its place there is its place in --help) and to the sources in
// CMakeLists.txt. A verb parses, calls and prints; what it does lives in a library.
//
//   Verb list_verb() {
//     return {"list", "every system: paper, triple, data, figure to expect", "fovea list --json",
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

enum ExitCode { kDone = 0, kFailed = 1, kWrongUsage = 2 };

// Throw this for what the user can put right by typing something else: one line, exit 2. Any other
// exception exits 1.
using fovea::UsageError;

struct Verb {
  std::string name;
  std::string summary;  // one line, for `fovea --help`
  std::string example;  // one command a line, each of which works as it stands; shown by `fovea
                        // NAME --help` and run by a test
  // Declares the options on `app` and returns what to do once they are parsed; that returns an exit
  // code.
  std::function<std::function<int()>(CLI::App& app)> declare;
};

Verb list_verb();
Verb generate_verb();
Verb bench_verb();
Verb train_verb();
Verb evaluate_verb();
Verb predict_verb();
Verb explain_verb();
Verb attend_verb();
Verb tour_verb();
Verb score_verb();

// Every verb, in the order of --help.
const std::vector<Verb>& verbs();

}  // namespace fovea::cli
