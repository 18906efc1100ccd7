#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/verbs/verbs.h"
#include "systems/run/session.h"

namespace fovea::cli {
namespace {

void print_options(const systems::System& system) {
  const OptionValues option_values = system.option_values();
  const Json defaults = option_values.json();
  for (const Option& option : option_values.declared())
    std::cout << fmt::format("  --set {}={}\n      {} ({})\n", option.name,
                             defaults.at(option.name).is_string()
                                 ? defaults.at(option.name).get<std::string>()
                                 : defaults.at(option.name).dump(),
                             option.help, option.describe_type());
}

void print_one(const systems::System& system) {
  const systems::Info& info = system.info;
  std::cout << fmt::format("{}: {}\n  {}\n  {}\n", info.name, info.title, info.paper,
                           info.equation);
  std::cout << fmt::format("  query {}; key {}; value {}\n", info.triple.query, info.triple.key,
                           info.triple.value);
  std::cout << fmt::format("  score {}; normaliser {}; structure {}\n", info.triple.score,
                           info.triple.normaliser, info.triple.structure);
  for (const std::string& format : info.formats) std::cout << "  data: " << format << "\n";
  std::cout << "  expect: " << info.expect << "\n";
}

int run(const std::string& only, bool json) {
  std::vector<const systems::System*> chosen = systems::all();
  if (!only.empty()) chosen = {&systems::find(only)};
  if (json) {
    Json all = {{"systems", Json::array()}};
    for (const systems::System* system : chosen)
      all["systems"].push_back(systems::describe(*system));
    std::cout << all.dump(2) << "\n";
    return kDone;
  }
  for (const systems::System* system : chosen) {
    print_one(*system);
    if (!only.empty()) print_options(*system);
  }
  return kDone;
}

}  // namespace

Verb list_verb() {
  return {"list", "all systems: paper, choices, data formats, figures to expect",
          "fovea list\nfovea list nadaraya-watson", [](CLI::App& app) {
            auto only = std::make_shared<std::string>();
            auto json = std::make_shared<bool>(false);
            app.add_option("system", *only, "show one system with its options");
            app.add_flag("--json", *json, "print one JSON object");
            return [only, json] { return run(*only, *json); };
          }};
}

}  // namespace fovea::cli
