#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "cli/arguments.h"
#include "cli/output/streams.h"
#include "cli/verbs/verbs.h"
#include "io/folder.h"
#include "io/write.h"
#include "fovea/error.h"
#include "train/run/curves.h"
#include "train/run/run_folder.h"

namespace fovea::cli {
namespace {

struct CurvesOptions {
  std::string run, out = "-", tensorboard;
};

train::Curves curves_of(const std::string& folder) {
  const train::RunFolder run(folder);
  if (!run.has("metrics.jsonl"))
    throw InvalidArgument(
        folder +
        ": no metrics by epoch. It was not trained in epochs, or it has several seeds or "
        "folds: give the folder of one of these");
  return train::read_curves(run.read("metrics.jsonl"), (run / "metrics.jsonl").string());
}

int run(const CurvesOptions& options) {
  const train::Curves curves = curves_of(options.run);
  if (!options.tensorboard.empty()) {
    const double now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const std::filesystem::path folder = options.tensorboard;
    io::make_folder(folder);
    io::write_file(folder / fmt::format("events.out.tfevents.{:.0f}.fovea", now),
                   train::curves_events(curves, now));
    return kDone;
  }
  OutputFile output(options.out);
  output.stream() << train::curves_csv(curves);
  output.finish();
  return kDone;
}

}  // namespace

Verb curves_verb() {
  return {"curves", "the metrics of a training by epoch, as CSV or for TensorBoard",
          "fovea train general --set epochs=2 --quiet --out out/lookup\n"
          "fovea curves out/lookup --out out/lookup.csv\n"
          "fovea curves out/lookup --tensorboard out/events",
          [](CLI::App& app) {
            auto options = std::make_shared<CurvesOptions>();
            add_path(app, "run", options->run, "a folder that `fovea train` wrote")->required();
            auto* out =
                add_path(app, "--out", options->out, "a CSV file, or - for standard output");
            add_path(app, "--tensorboard", options->tensorboard,
                     "a folder for an event file, which `tensorboard --logdir` shows")
                ->excludes(out);
            return [options] { return run(*options); };
          }};
}

}  // namespace fovea::cli
