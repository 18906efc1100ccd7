#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/arguments.h"
#include "cli/streams.h"
#include "cli/verbs/verbs.h"
#include "data/files/write.h"
#include "explain/report.h"
#include "systems/pages/lecture.h"
#include "systems/run/session.h"

namespace fovea::cli {
namespace {

struct ExplainOptions {
  std::string run, input, out, device = "cpu";
  int threads = 0;
  std::vector<std::string> set;
};

// One explanation is an object, several are an array of them.
std::string json_text(const std::vector<explain::Explanation>& explanations) {
  if (explanations.size() == 1) return explain::to_json(explanations[0]) + "\n";
  std::string text = "[";
  for (const explain::Explanation& one : explanations)
    text += (text.size() > 1 ? ",\n" : "\n") + explain::to_json(one);
  return text + "\n]\n";
}

// The pictures first, how the run learned last.
std::string html_text(const systems::Run& run, std::vector<explain::Explanation> explanations) {
  if (auto learning = systems::learning(run)) explanations.push_back(std::move(*learning));
  return explain::html_report({systems::lecture(*run.system, std::move(explanations), {}, {})},
                              {.title = run.system->info.title});
}

int run(const ExplainOptions& options) {
  const bool json = options.out.ends_with(".json");
  if (!json && !options.out.ends_with(".html"))
    throw UsageError("--out " + options.out + ": expected a name that ends in .html or .json");
  systems::Run run =
      systems::open(options.run, options.device, options.threads, options.set, Use::kExplain);
  say_which(run, options.run);
  std::vector<explain::Explanation> explanations;
  if (options.input.empty()) {
    explanations = systems::explain(run, nullptr);
  } else {
    InputFile file(options.input);
    Input input = file.input();
    explanations = systems::explain(run, &input);
  }
  if (explanations.empty())
    throw InvalidArgument((options.input.empty() ? options.run : "--input " + options.input) +
                          ": nothing in it to show");
  data::write_file(options.out, json ? json_text(explanations) : html_text(run, explanations));
  return kDone;
}

}  // namespace

Verb explain_verb() {
  return {"explain", "pictures of the attention of a RUN",
          "fovea explain out/curve --out out/curve.html", [](CLI::App& app) {
            auto options = std::make_shared<ExplainOptions>();
            add_path(app, "run", options->run, "a folder that `fovea train` wrote")->required();
            add_path(app, "--input", options->input,
                     "items to explain, a file or - for standard input; default: test items");
            add_path(app, "--out", options->out, "report.html, or explanation.json")->required();
            add_settings(app, options->set,
                         "an option of the system to change for this use, name=value");
            add_threads(app, options->threads);
            add_device(app, options->device);
            return [options] { return run(*options); };
          }};
}

}  // namespace fovea::cli
