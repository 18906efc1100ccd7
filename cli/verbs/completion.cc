#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/definitions.h"
#include "cli/verbs/verbs.h"
#include "fovea/version.h"
#include "systems/system.h"

namespace fovea::cli {
namespace {

int run(const std::string& what) {
  std::vector<std::string> systems;
  for (const systems::System* system : systems::all()) systems.push_back(system->info.name);
  const std::vector<VerbDefinition> all = definitions(verbs());
  if (what == "bash") {
    std::cout << bash_completion(all, systems);
  } else if (what == "zsh") {
    std::cout << zsh_completion(all, systems);
  } else if (what == "fish") {
    std::cout << fish_completion(all, systems);
  } else if (what == "man") {
    std::cout << manual_page(all, FOVEA_VERSION);
  } else {
    throw UsageError("completion " + what + ": expected bash, zsh, fish or man");
  }
  return kDone;
}

}  // namespace

Verb completion_verb() {
  return {"completion", "print completion for a shell, or the manual page",
          "fovea completion bash\nfovea completion man", [](CLI::App& app) {
            auto what = std::make_shared<std::string>();
            app.add_option("what", *what, "bash, zsh, fish or man")->required();
            return [what] { return run(*what); };
          }};
}

}  // namespace fovea::cli
