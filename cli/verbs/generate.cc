#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/arguments.h"
#include "cli/verbs/verbs.h"
#include "data/files/json_text.h"
#include "systems/generate.h"

namespace fovea::cli {
namespace {

struct GenerateOptions {
  systems::GenerateRequest request;
  std::string out;
  bool json = false;
};

// The command that trains on the files, with the same result as training on the generator.
std::string train_command(const systems::GenerateRequest& request, const std::string& data) {
  std::string command = fmt::format("fovea train {} --data {}", request.system, data);
  for (const std::string& assignment : request.set) command += " --set " + assignment;
  if (request.seed != 1) command += fmt::format(" --data-seed {}", request.seed);
  return command + " --out RUN";
}

int run(GenerateOptions& options) {
  options.request.out = options.out;
  const Written written = systems::generate(options.request);
  const std::string data =
      written.data.empty() ? options.out : (options.request.out / written.data).string();
  const std::string command = train_command(options.request, data);
  if (options.json) {
    Json names = Json::array();
    for (const auto& [name, bytes] : written.files) names.push_back(name);
    const Json said = {{"system", options.request.system},
                       {"seed", options.request.seed},
                       {"files", names},
                       {"data", data},
                       {"truth", written.truth},
                       {"train", command}};
    std::cout << data::json_text(said) << "\n";
    return kDone;
  }
  for (const auto& [name, bytes] : written.files)
    std::cout << fmt::format("{}  {} bytes\n", (options.request.out / name).string(), bytes.size());
  std::cout << "true attention: " << (written.truth.empty() ? "none to know" : written.truth)
            << "\n"
            << command << "\n";
  return kDone;
}

}  // namespace

Verb generate_verb() {
  return {"generate", "write a system's generated data as files, with the true attention",
          "fovea generate bahdanau --out out/dates --overwrite", [](CLI::App& app) {
            auto options = std::make_shared<GenerateOptions>();
            systems::GenerateRequest& request = options->request;
            app.add_option("system", request.system, "name of the system; `fovea list` shows all")
                ->required();
            add_settings(app, request.set,
                         "an option of the system, name=value; `fovea list SYSTEM` shows them");
            add_seed(app, "--seed", request.seed,
                     "seed of the items; the same as --data-seed of `train`");
            add_path(app, "--out", options->out, "folder for the files")->required();
            app.add_flag("--overwrite", request.overwrite, "replace existing files");
            app.add_flag("--json", options->json, "print one JSON object");
            return [options] { return run(*options); };
          }};
}

}  // namespace fovea::cli
