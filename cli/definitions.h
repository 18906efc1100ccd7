// The verbs and their options as data, from the same declarations that parse them: for completion in a
// shell and for manual pages.
#pragma once

#include <string>
#include <vector>

#include "cli/verbs/verbs.h"

namespace fovea::cli {

struct OptionDefinition {
  std::string name;   // "--out", or the name of an argument that has no dashes
  std::string value;  // what it takes, "TEXT"; empty for a flag
  std::string help;
};

struct VerbDefinition {
  std::string name, summary, example;
  std::vector<OptionDefinition> options;  // without --help, which all have
};

std::vector<VerbDefinition> definitions(const std::vector<Verb>& verbs);

// What `source <(fovea completion bash)` and its like for zsh and fish read. `systems` are the names
// that `train`, `generate` and `list` take.
std::string bash_completion(const std::vector<VerbDefinition>&,
                            const std::vector<std::string>& systems);
std::string zsh_completion(const std::vector<VerbDefinition>&,
                           const std::vector<std::string>& systems);
std::string fish_completion(const std::vector<VerbDefinition>&,
                            const std::vector<std::string>& systems);

// The manual page fovea(1), in the language of man.
std::string manual_page(const std::vector<VerbDefinition>&, const std::string& version);

}  // namespace fovea::cli
