#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/arguments.h"
#include "cli/output/report_text.h"
#include "cli/verbs/verbs.h"
#include "cli/workers.h"
#include "data/files/json_text.h"
#include "systems/run/rank_answers.h"

namespace fovea::cli {
namespace {

struct EvaluateOptions {
  systems::EvaluateRequest request = {.threads = 0};
  RankOptions ranks;
  bool json = false;
};

void print(const Json& report, const EvaluateOptions& options) {
  std::cout << (options.json ? data::json_text(report) + "\n" : report_text(report));
}

int start_workers(const EvaluateOptions& options) {
  const systems::EvaluateRequest& request = options.request;
  std::vector<std::string> arguments = {"fovea",
                                        "evaluate",
                                        request.run,
                                        "--device",
                                        request.device,
                                        "--threads",
                                        std::to_string(std::max(1, request.threads)),
                                        "--timeout",
                                        fmt::format("{}", options.ranks.timeout)};
  if (!request.data.empty()) arguments.insert(arguments.end(), {"--data", request.data});
  if (request.split != systems::EvaluateRequest().split)
    arguments.insert(arguments.end(), {"--split", request.split});
  for (const std::string& one : request.set) arguments.insert(arguments.end(), {"--set", one});
  if (options.json) arguments.emplace_back("--json");
  train::Progress silent(train::Progress::Style::kSilent);
  return run_workers({.count = options.ranks.workers}, arguments, silent);
}

int run(EvaluateOptions& options) {
  systems::EvaluateRequest& request = options.request;
  const auto place = place_of(options.ranks.workers);
  if (options.ranks.workers > 0) return start_workers(options);
  if (place && place->size > 1) {
    request.threads = std::max(1, request.threads);
    if (const auto report = systems::evaluate_as_rank(request, *place, options.ranks.timeout))
      print(*report, options);
    return kDone;
  }
  print(systems::evaluate(request.run, request.data, request.split, request.device, request.threads,
                          request.set),
        options);
  return kDone;
}

}  // namespace

std::string report_text(const Json& report) {
  const int64_t items = report.at("items").get<int64_t>();
  std::string text = fmt::format("{}, {} {} item{} ({})\n", report.at("system").get<std::string>(),
                                 items, report.at("split").get<std::string>(),
                                 items == 1 ? "" : "s", report.at("data").get<std::string>());
  for (const char* part : {"metrics", "attention"}) {
    for (const auto& [name, value] : report.at(part).items()) {
      text += fmt::format("  {:<24} {:.6g}",
                          std::string(part) == "metrics" ? name : "attention " + name,
                          value.get<double>());
      if (report.contains("spread"))
        text += fmt::format(" ± {:.3g}", report.at("spread").at(part).at(name).get<double>());
      text += "\n";
    }
  }
  for (const auto& note : report.value("notes", Json::array()))
    text += fmt::format("  {}\n", note.get<std::string>());
  if (report.contains("runs")) text += fmt::format("  over {} runs\n", report.at("runs").size());
  text += fmt::format("  {}\n", report.at("signature").get<std::string>());
  return text;
}

Verb evaluate_verb() {
  return {"evaluate", "metrics of a RUN, on its own test split or on other data",
          "fovea evaluate out/curve --json", [](CLI::App& app) {
            auto options = std::make_shared<EvaluateOptions>();
            systems::EvaluateRequest& request = options->request;
            add_path(app, "run", request.run, "a folder that `fovea train` wrote")->required();
            add_path(app, "--data", request.data, "other data; all its items are evaluated");
            app.add_option("--split", request.split, "train, validation or test; default: test");
            add_settings(app, request.set,
                         "an option of the system to change for this use, name=value");
            add_threads(app, request.threads);
            add_device(app, request.device);
            add_ranks(app, options->ranks);
            app.add_flag("--json", options->json, "print one JSON object");
            return [options] { return run(*options); };
          }};
}

}  // namespace fovea::cli
