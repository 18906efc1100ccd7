#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/report_text.h"
#include "cli/side_by_side.h"
#include "cli/verbs.h"
#include "systems/session.h"
#include "train/interrupt.h"

namespace fovea::cli {
namespace {

struct TrainOptions {
  systems::TrainRequest request;
  std::string out;
  int jobs = 1;
  bool json = false, quiet = false;
};

int run(TrainOptions& options) {
  options.request.out = options.out;
  train::Progress progress(options.quiet ? train::Progress::Style::kSilent
                                         : train::Progress::style_of_stderr());
  if (options.jobs < 1)
    throw UsageError(fmt::format("--jobs {}: expected at least 1", options.jobs));
  if (options.jobs > 1 && options.request.only.empty() &&
      !systems::member_names(options.request).empty()) {
    systems::begin(options.request);
    train_side_by_side(options.request, options.jobs, progress);
    options.request.resume = true, options.request.overwrite = false;  // read what they left
  }
  const Json report = systems::train(options.request, progress);
  progress.finish();
  std::cout << (options.json ? report.dump(2) + "\n"
                             : report_text(report) + fmt::format("run: {}\n", options.out));
  return kDone;
}

}  // namespace

Verb train_verb() {
  return {
      "train", "train a system on its generator or on your data",
      "fovea train nadaraya-watson --out out/curve --overwrite", [](CLI::App& app) {
        auto options = std::make_shared<TrainOptions>();
        systems::TrainRequest& request = options->request;
        app.add_option("system", request.system, "its name, as `fovea list` shows it")->required();
        app.add_option("--data", request.data, "file or folder; without it, generated data");
        app.add_option("--set", request.set,
                       "an option of the system, name=value; `fovea list SYSTEM` shows them")
            ->allow_extra_args(false);
        app.add_option("--epochs", request.epochs, "passes over the training items");
        app.add_option("--seed", request.seed, "of initial weights, order and dropout");
        app.add_option("--data-seed", request.data_seed, "of generated items and of splits");
        app.add_option("--seeds", request.seeds, "repeat with this many seeds: means and spread");
        app.add_option("--folds", request.folds, "cross-validate: one run for each fold");
        app.add_option("--jobs", options->jobs,
                       "seeds or folds trained side by side, each in a process of its own");
        app.add_option("--only", request.only, "of several seeds or folds this one: fold-3");
        app.add_option("--threads", request.threads, "0: as many as there are");
        app.add_option("--device", request.device, "cpu, cuda or cuda:N");
        app.add_option("--checkpoint", request.save_every_seconds, "seconds between two saves");
        app.add_option("--out", options->out, "the RUN folder")->required();
        app.add_flag("--resume", request.resume,
                     "go on with an unfinished RUN; start where there is none");
        app.add_flag("--overwrite", request.overwrite, "replace the RUN that is there");
        app.add_flag("--json", options->json, "print one JSON object");
        app.add_flag("--quiet", options->quiet, "no progress");
        return [options] { return run(*options); };
      }};
}

}  // namespace fovea::cli
