#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <ctime>
#include <iostream>
#include <memory>

#include "cli/arguments.h"
#include "cli/verbs/verbs.h"
#include "data/files/file.h"
#include "data/files/json.h"
#include "train/run/run_list.h"

namespace fovea::cli {
namespace {

std::string date_of(const train::RunLine& line) {
  const std::time_t time = std::chrono::system_clock::to_time_t(line.written);
  std::tm parts{};
  localtime_r(&time, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts));
}

Json json_of(const train::RunLine& line) {
  Json out = {{"folder", line.folder.string()}};
  if (!line.broken.empty()) return out["broken"] = line.broken, out;
  out["system"] = line.system;
  out["data"] = line.data;
  out["figure"] = line.figure;
  out["date"] = date_of(line);
  return out;
}

void print(const std::vector<train::RunLine>& lines) {
  std::vector<std::array<std::string, 5>> rows = {{"folder", "system", "data", "figure", "date"}};
  for (const train::RunLine& line : lines) {
    if (line.broken.empty())
      rows.push_back({line.folder.string(), line.system, line.data, line.figure, date_of(line)});
    else
      rows.push_back({line.folder.string(), "cannot be read", line.broken, "", ""});
  }
  std::array<size_t, 5> wide{};
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) wide[i] = std::max(wide[i], row[i].size());
  for (const auto& row : rows) {
    std::string text;
    for (size_t i = 0; i < row.size(); ++i)
      text += fmt::format("{:<{}}", data::visible(row[i]), i + 1 < row.size() ? wide[i] + 2 : 0);
    std::cout << text.substr(0, text.find_last_not_of(' ') + 1) << "\n";
  }
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
                std::cout << all.dump(2) << "\n";
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
