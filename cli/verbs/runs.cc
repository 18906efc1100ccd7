#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <utility>

#include "cli/arguments.h"
#include "cli/output/figures_table.h"
#include "cli/verbs/verbs.h"
#include "data/files/file.h"
#include "data/files/json_text.h"
#include "train/run/run_list.h"

namespace fovea::cli {
namespace {

Json json_of(const train::RunLine& line) {
  Json out = {{"folder", line.folder.string()}};
  if (!line.broken.empty()) return out["broken"] = line.broken, out;
  out["system"] = line.system;
  out["data"] = line.data;
  out["figure"] = line.figure;
  out["date"] = line.date;
  return out;
}

void print(const std::vector<train::RunLine>& lines) {
  std::vector<std::vector<std::string>> rows = {{"folder", "system", "data", "figure", "date"}};
  for (const train::RunLine& line : lines) {
    if (line.broken.empty())
      rows.push_back({line.folder.string(), line.system, line.data, line.figure, line.date});
    else
      rows.push_back({line.folder.string(), "cannot be read", line.broken, "", ""});
  }
  std::cout << aligned(std::move(rows));
}

}  // namespace

Verb runs_verb() {
  return {"runs", "the RUNs in a folder: system, data, figure, date", "fovea runs out",
          [](CLI::App& app) {
            auto folder = std::make_shared<std::string>(".");
            auto json = std::make_shared<bool>(false);
            add_path(app, "folder", *folder,
                     "folder to search, with all folders in it; default: the current folder");
            app.add_flag("--json", *json, "print one JSON array");
            return [folder, json]() -> int {
              const std::vector<train::RunLine> lines = train::runs_under(*folder);
              if (*json) {
                Json all = Json::array();
                for (const train::RunLine& line : lines) all.push_back(json_of(line));
                std::cout << data::json_text(all, 2) << "\n";
              } else if (lines.empty()) {
                std::cout << "no RUN in " << data::visible(*folder) << "\n";
              } else {
                print(lines);
              }
              return kDone;
            };
          }};
}

}  // namespace fovea::cli
