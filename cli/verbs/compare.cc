#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/arguments.h"
#include "cli/output/figures_table.h"
#include "cli/verbs/verbs.h"
#include "data/files/json_text.h"
#include "io/write.h"
#include "explain/report.h"
#include "systems/pages/lecture.h"
#include "systems/run/session.h"

namespace fovea::cli {
namespace {

struct CompareOptions {
  std::vector<std::string> runs;
  std::string out, split = "test";
  int threads = 0;
  bool json = false;
};

// The part of a signature after version, options and seed: the items that were evaluated.
std::string judged_on(const Json& report) {
  return fmt::format("{}, {} items of {}", report.at("data").get<std::string>(),
                     report.at("items").get<int64_t>(), report.at("split").get<std::string>());
}

std::vector<std::vector<std::string>> table(const std::vector<Compared>& all) {
  std::vector<std::vector<std::string>> rows = {{""}, {"system"}, {"judged on"}};
  for (const Compared& one : all) {
    rows[0].push_back(one.name);
    rows[1].push_back(one.report.at("system").get<std::string>());
    rows[2].push_back(judged_on(one.report));
  }
  for (const std::string& figure : figures_of(all)) {
    rows.push_back({figure});
    for (const Compared& one : all) rows.back().push_back(figure_text(one, figure));
  }
  return rows;
}

// Each RUN is a part of the page, with its pictures and figures.
std::string page_of(const CompareOptions& options, const std::vector<Compared>& all) {
  std::vector<explain::Section> sections;
  for (const Compared& one : all) {
    systems::Run run = systems::open(one.name, "cpu", options.threads, {}, Use::kExplain);
    sections.push_back(systems::lecture(run, systems::explain(run, nullptr), one.report, {}));
    sections.back().id = {};
    sections.back().title = one.name + ": " + sections.back().title;
  }
  return explain::html_report(sections, {.title = "Runs compared"});
}

int run(const CompareOptions& options) {
  for (const std::string& name : options.runs)
    if (name.empty()) throw UsageError("compare '': expected a path");
  if (options.runs.size() < 2)
    throw UsageError("compare " + options.runs.front() + ": expected at least two RUNs");
  if (!options.out.empty() && !options.out.ends_with(".html"))
    throw UsageError("--out " + options.out + ": expected a name that ends in .html");
  std::vector<Compared> all;
  for (const std::string& name : options.runs)
    all.push_back({name, systems::evaluate(name, "", options.split, "cpu", options.threads, {})});
  if (options.json) {
    Json out = Json::array();
    for (Compared& one : all) {
      one.report["run"] = one.name;
      out.push_back(one.report);
    }
    std::cout << data::json_text(out, 2) << "\n";
  } else {
    std::cout << aligned(table(all));
  }
  if (std::any_of(all.begin(), all.end(), [&](const Compared& one) {
        return judged_on(one.report) != judged_on(all.front().report);
      }))
    std::cerr << "fovea: the runs are judged on different items: their figures do not compare\n";
  if (!options.out.empty()) io::write_file(options.out, page_of(options, all));
  return kDone;
}

}  // namespace

Verb compare_verb() {
  return {"compare", "figures of several RUNs side by side, and their pictures on one page",
          "fovea train nadaraya-watson --set kernel=box --quiet --out out/boxes\n"
          "fovea compare out/curve out/boxes --out out/compared.html",
          [](CLI::App& app) {
            auto options = std::make_shared<CompareOptions>();
            app.add_option("runs", options->runs, "folders that `fovea train` wrote")->required();
            add_path(app, "--out", options->out,
                     "HTML page to write, with the pictures and figures of each RUN");
            app.add_option("--split", options->split, "train, validation or test; default: test");
            add_threads(app, options->threads);
            app.add_flag("--json", options->json, "print one JSON array: a report for each RUN");
            return [options] { return run(*options); };
          }};
}

}  // namespace fovea::cli
