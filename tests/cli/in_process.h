// The command line's frame inside the test's own process.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/command.h"

namespace fovea::cli {

struct Outcome {
  int code;
  std::string out, err;  // `out` is what a verb printed, after what the frame did
};

inline Outcome run_in_process(const std::vector<Verb>& verbs, std::vector<std::string> words) {
  words.insert(words.begin(), "fovea");
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::ostringstream out, err;
  testing::internal::CaptureStdout();
  const int code = run({verbs, [] { return "fovea 1.2.3\n"; }, out, err},
                       static_cast<int>(arguments.size()), arguments.data());
  return {code, out.str() + testing::internal::GetCapturedStdout(), err.str()};
}

}  // namespace fovea::cli
