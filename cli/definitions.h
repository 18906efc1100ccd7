// The verbs and their options as data, from the same declarations that parse them: for completion in a
// shell and for manual pages.
#pragma once

#include <string>
#include <vector>

#include "cli/verbs/verbs.h"

namespace fovea::cli {

struct OptionDefinition {
  std::string name;   // "--out", or the name of an argument that has no dashes
  std::string value;  // the kind of its value, "TEXT"; empty for a flag
  std::string help;
};

struct VerbDefinition {
  std::string name, summary, example;
  std::vector<OptionDefinition> options;  // without --help, which every verb has
};

std::vector<VerbDefinition> definitions(const std::vector<Verb>& verbs);

// The script for `source <(fovea completion bash)`, and the same for zsh and fish. `systems` are
// the names that `train`, `generate` and `list` accept.
std::string bash_completion(const std::vector<VerbDefinition>&,
                            const std::vector<std::string>& systems);
std::string zsh_completion(const std::vector<VerbDefinition>&,
                           const std::vector<std::string>& systems);
std::string fish_completion(const std::vector<VerbDefinition>&,
                            const std::vector<std::string>& systems);

// The manual page fovea(1), in roff.
std::string manual_page(const std::vector<VerbDefinition>&, const std::string& version);

}  // namespace fovea::cli
