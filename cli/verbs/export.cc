#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/arguments.h"
#include "cli/output/streams.h"
#include "cli/verbs/verbs.h"
#include "systems/run/export.h"

namespace fovea::cli {
namespace {

struct ExportOptions {
  std::string run, out;
  bool overwrite = false;
};

int run(const ExportOptions& options) {
  const systems::Run opened = systems::open(options.run);
  say_which(opened, options.run);
  const Written written = systems::export_run(opened, options.out, options.overwrite);
  for (const auto& [name, bytes] : written.files)
    std::cout << fmt::format("{}/{}  {} bytes\n", options.out, name, bytes.size());
  return kDone;
}

}  // namespace

Verb export_verb() {
  return {"export", "write the weights of a RUN of bert or next-word as a Hugging Face folder",
          "fovea train bert --epochs 1 --set documents=200 --out out/bert --overwrite\n"
          "fovea export out/bert --out out/bert-folder --overwrite",
          [](CLI::App& app) {
            auto options = std::make_shared<ExportOptions>();
            add_path(app, "run", options->run, "a folder that `fovea train` wrote")->required();
            add_path(app, "--out", options->out, "folder for the files")->required();
            app.add_flag("--overwrite", options->overwrite, "replace existing files");
            return [options] { return run(*options); };
          }};
}

}  // namespace fovea::cli
