#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/arguments.h"
#include "cli/output/report_text.h"
#include "cli/side_by_side.h"
#include "cli/sweep.h"
#include "cli/train_arguments.h"
#include "cli/verbs/verbs.h"
#include "cli/workers.h"
#include "data/files/json_text.h"
#include "systems/run/ranks.h"
#include "systems/run/run_config.h"
#include "systems/run/training.h"
#include "train/interrupt.h"

namespace fovea::cli {
namespace {

constexpr int64_t kMostEpochs = 10'000'000, kMostJobs = 256, kMostRestarts = 1000;

struct TrainOptions {
  systems::TrainRequest request;
  std::string out;
  int jobs = 1;
  std::vector<std::string> sweep;
  Workers workers = {.count = 0,
                     .others = {"--quiet"},
                     .stopped = "stopped: the same command with --resume continues"};
  double timeout = kTimeoutSeconds;
  bool json = false, quiet = false;
};

int run_sweep(const TrainOptions& options, train::Progress& progress) {
  const std::vector<Compared> all =
      train_sweep(sweep_of(options.request, options.sweep), options.jobs, progress);
  progress.finish();
  if (options.json) {
    Json reports = Json::array();
    for (const Compared& one : all) reports.push_back(one.report);
    std::cout << data::json_text(reports, 2) << "\n";
  } else {
    std::cout << sweep_table(all) << fmt::format("runs: {}\n", options.out);
  }
  return kDone;
}

void print(const Json& report, const TrainOptions& options) {
  std::cout << (options.json ? data::json_text(report, 2) + "\n"
                             : report_text(report) + fmt::format("run: {}\n", options.out));
}

// One process may train several RUNs at a time, or several processes one RUN.
void refuse_jobs(const TrainOptions& options) {
  if (options.jobs > 1 || !options.sweep.empty())
    throw UsageError(
        "--jobs and --sweep: not with --workers or a launcher of ranks, which train one RUN");
}

int start_workers(const TrainOptions& options, train::Progress& progress) {
  refuse_jobs(options);
  systems::TrainRequest request = options.request;
  request.ranks = options.workers.count;
  std::vector<std::string> arguments = arguments_of(request, std::max(1, request.threads));
  arguments.insert(arguments.end(), {"--timeout", fmt::format("{}", options.timeout)});
  if (options.json) arguments.emplace_back("--json");
  if (options.quiet) arguments.emplace_back("--quiet");
  return run_workers(options.workers, arguments, progress);
}

int run_rank(TrainOptions& options, const train::Place& place, train::Progress& progress) {
  refuse_jobs(options);
  options.request.ranks = place.size;
  if (place.restarts > 0) {  // the launcher's: the same command again
    options.request.resume = true;
    options.request.overwrite = false;
  }
  const auto report = systems::train_as_rank(options.request, place, options.timeout, progress);
  progress.finish();
  if (report) print(*report, options);
  return kDone;
}

int run(TrainOptions& options) {
  const train::InterruptGuard guard;
  const train::ExitWhenAsked exits;
  options.request.out = options.out;
  train::Progress progress(options.quiet ? train::Progress::Style::kSilent
                                         : train::Progress::style_of_stderr());
  const auto place = place_of(options.workers.count);
  if (options.workers.count > 0) return start_workers(options, progress);
  if (place && place->size > 1) return run_rank(options, *place, progress);
  if (place) options.request.ranks = 1;
  if (!options.sweep.empty()) return run_sweep(options, progress);
  if (options.jobs > 1 && options.request.seeds == 1 && options.request.folds == 0)
    throw UsageError(
        fmt::format("--jobs {}: expected --seeds, --folds or --sweep with it", options.jobs));
  systems::Training training(options.request, progress);
  if (options.jobs > 1 && options.request.only.empty()) {
    std::vector<Job> members;
    for (const std::string& name : training.hand_out()) {
      Job& member = members.emplace_back(Job{name, options.request});
      member.request.only = name;
      member.request.resume = true;  // this process has already created its folder
      member.request.overwrite = false;
    }
    train_side_by_side(members, {.jobs = options.jobs, .threads = training.threads()}, progress);
  }
  const Json report = training.run();
  progress.finish();
  print(report, options);
  return kDone;
}

}  // namespace

Verb train_verb() {
  return {
      "train", "train a system on generated data or on your own",
      "fovea train nadaraya-watson --out out/curve --overwrite\n"
      "fovea train nadaraya-watson --sweep kernel=gaussian,box,tricube --jobs 2 --quiet --out "
      "out/kernels --overwrite\n"
      "fovea train word-sum --workers 2 --epochs 2 --quiet --out out/ranks --overwrite",
      [](CLI::App& app) {
        auto options = std::make_shared<TrainOptions>();
        systems::TrainRequest& request = options->request;
        app.add_option("system", request.system, "name of the system; `fovea list` shows all")
            ->required();
        add_path(
            app, "--data", request.data,
            "file or folder, in a form that `fovea list SYSTEM` shows; default: generated data");
        add_settings(app, request.set,
                     "an option of the system, name=value; `fovea list SYSTEM` shows them");
        add_integer(
            app, "--epochs", [&request](int64_t n) { request.epochs = n; }, 0, kMostEpochs,
            "passes over the training items; default: that of the system");
        add_seed(app, "--seed", request.seed,
                 "seed of initial weights, order of items and dropout; default: 1");
        add_seed(app, "--data-seed", request.data_seed,
                 "seed of generated items and of splits; default: 1");
        add_integer(
            app, "--seeds", [&request](int64_t n) { request.seeds = n; }, 1, systems::kMostMembers,
            "number of seeds to train with; reports means and standard deviations");
        add_integer(
            app, "--folds", [&request](int64_t n) { request.folds = n; }, 2, systems::kMostMembers,
            "number of folds of a cross-validation; each is trained and tested once");
        add_integer(
            app, "--jobs", [options](int64_t n) { options->jobs = static_cast<int>(n); }, 1,
            kMostJobs, "number of runs, seeds or folds trained at a time, each in its own process");
        app.add_option(
               "--sweep", options->sweep,
               "train once for each value of an option, name=a,b,c; each is a RUN in a folder "
               "of --out. Given again: every combination of values")
            ->allow_extra_args(false);
        app.add_option("--only", request.only,
                       "train only this one of several seeds or folds, for example fold-3");
        add_threads(app, request.threads,
                    "number of threads; 0: all, or one for a training of small steps");
        add_device(app, request.device);
        add_integer(
            app, "--workers",
            [options](int64_t n) { options->workers.count = static_cast<int>(n); }, 1, kMostWorkers,
            "number of processes on this machine that train one RUN together; torchrun, mpirun and "
            "srun start processes on several machines");
        add_integer(
            app, "--parts", [&request](int64_t n) { request.parts = n; }, 1, systems::kMostParts,
            "parts that each batch is divided into: less memory, and the same weights for any "
            "number of ranks; default: 1, or 4 under a launcher and with --workers");
        app.add_option(
               "--sums", request.sums,
               "order in which gradients of ranks are added: ordered (the same bits for any "
               "number of ranks), or any (as c10d does)")
            ->check(CLI::IsMember({"ordered", "any"}));
        add_timeout(app, options->timeout);
        add_integer(
            app, "--restarts",
            [options](int64_t n) { options->workers.restarts = static_cast<int>(n); }, 0,
            kMostRestarts, "with --workers: how often all start again after one was lost");
        add_number(app, "--checkpoint", request.save_every_seconds, 0, 1e6,
                   "seconds between two saves for --resume; default: 20");
        add_path(app, "--out", options->out, "folder of the RUN")->required();
        auto* resume = app.add_flag("--resume", request.resume,
                                    "continue an unfinished RUN; start one if there is none");
        app.add_flag("--overwrite", request.overwrite, "replace an existing RUN")->excludes(resume);
        app.add_flag("--json", options->json, "print one JSON object");
        app.add_flag("--quiet", options->quiet, "no progress");
        return [options] { return run(*options); };
      }};
}

}  // namespace fovea::cli
