// From an argument vector to an exit code: finds the verb, parses its options, runs it; every
// failure is one line.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "cli/verbs/verbs.h"

namespace fovea::cli {

struct Command {
  const std::vector<Verb>& verbs;
  std::function<std::string()> version;  // called for --version only
  std::ostream& out;
  std::ostream& err;
};

int run(const Command& command, int argc, const char* const* argv);

}  // namespace fovea::cli
