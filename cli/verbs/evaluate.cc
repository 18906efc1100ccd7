#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/arguments.h"
#include "cli/output/report_text.h"
#include "cli/verbs/verbs.h"
#include "data/files/json_text.h"
#include "systems/run/session.h"

namespace fovea::cli {
namespace {

struct EvaluateOptions {
  std::string run, data, split = "test", device = "cpu";
  int threads = 0;
  std::vector<std::string> set;
  bool json = false;
};

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
            add_path(app, "run", options->run, "a folder that `fovea train` wrote")->required();
            add_path(app, "--data", options->data, "other data; all its items are evaluated");
            app.add_option("--split", options->split, "train, validation or test; default: test");
            add_settings(app, options->set,
                         "an option of the system to change for this use, name=value");
            add_threads(app, options->threads);
            add_device(app, options->device);
            app.add_flag("--json", options->json, "print one JSON object");
            return [options] {
              const Json report =
                  systems::evaluate(options->run, options->data, options->split, options->device,
                                    options->threads, options->set);
              std::cout << (options->json ? data::json_text(report) + "\n" : report_text(report));
              return static_cast<int>(kDone);
            };
          }};
}

}  // namespace fovea::cli
