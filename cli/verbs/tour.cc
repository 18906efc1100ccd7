#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/arguments.h"
#include "cli/verbs/verbs.h"
#include "systems/pages/tour.h"
#include "train/interrupt.h"

namespace fovea::cli {
namespace {

struct TourOptions {
  systems::TourRequest request;
  std::string out = "out/tour";
  bool quiet = false;
};

int run(TourOptions& options) {
  const train::InterruptGuard guard;
  const train::ExitWhenAsked exits;
  options.request.out = options.out;
  train::Progress progress(options.quiet ? train::Progress::Style::kSilent
                                         : train::Progress::style_of_stderr());
  const systems::TourResult result = systems::tour(options.request, progress);
  progress.finish();
  const auto check = [&] {
    if (!result.failed.empty())
      throw std::runtime_error(fmt::format("did not run: {}", fmt::join(result.failed, ", ")));
  };
  if (result.ran.empty()) check();
  std::cout << fmt::format(
      "ran {} on generated data in {}: {}\n",
      result.ran.size() == 1 ? "one system" : fmt::format("{} systems", result.ran.size()),
      train::in_words(result.seconds), fmt::join(result.ran, ", "));
  std::cout << fmt::format(
      "attention on the right item: {}\n",
      result.found.empty() ? "no system here has a known answer" : result.found);
  std::cout << fmt::format("open {}\n", result.page.string());
  check();
  return kDone;
}

}  // namespace

Verb tour_verb() {
  return {"tour", "a short run of every system on generated data, and one page that explains them",
          "fovea tour --only pooling --out out/tour", [](CLI::App& app) {
            auto options = std::make_shared<TourOptions>();
            add_path(app, "--out", options->out,
                     "folder for index.html and the RUNs; default: out/tour");
            app.add_option("--only", options->request.only,
                           "names of the systems to run; default: all");
            add_threads(app, options->request.threads);
            app.add_flag("--quiet", options->quiet, "no progress");
            return [options] { return run(*options); };
          }};
}

}  // namespace fovea::cli
