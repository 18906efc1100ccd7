#include "systems/pages/own_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "systems/run/provenance.h"
#include "train/run/run_folder.h"
#include "train/task.h"

namespace fovea::systems {
namespace {

namespace fs = std::filesystem;

// Settings that are not the system's defaults, "name=value".
std::vector<std::string> chosen_settings(const Run& run) {
  const Json defaults = run.system->option_values().json();
  std::vector<std::string> out;
  for (const auto& [name, value] : run.config.at("options").items())
    if (defaults.contains(name) && defaults.at(name) != value)
      out.push_back(name + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
  return out;
}

}  // namespace

std::string own_data(const Json& config) {
  const Json data = config.value("data", Json());
  if (!data.is_string()) return "";
  const fs::path path = data.get<std::string>();
  return (path.has_filename() ? path.filename() : path.parent_path().filename()).string();
}

std::string own_words(const Run& run) {
  std::string out = own_data(run.config);
  const std::string read = run.task->read_in_words();
  // Every reader's line begins with its count: of a run that was opened without its data, 0.
  if (!read.empty() && !read.starts_with("0 ")) out += ": " + read;
  out += ".";
  const std::string date = run.folder->date();
  if (!date.empty()) out += " Trained on " + date + ".";
  const std::vector<std::string> settings = chosen_settings(run);
  if (!settings.empty()) out += fmt::format(" Settings: {}.", fmt::join(settings, ", "));
  return out;
}

std::string general_idea(const std::string& idea) {
  const size_t start = idea.find("Without ");
  if (start == std::string::npos || idea.find(" of yours", start) == std::string::npos) return idea;
  const size_t end = idea.find("\n\n", start);
  std::string out = idea.substr(0, start) + (end == std::string::npos ? "" : idea.substr(end));
  while (!out.empty() && (out.back() == ' ' || out.back() == '\n')) out.pop_back();
  return out;
}

Json own_report(Run& run) {
  Evaluation found = run.task->evaluate(Split::kTest);
  if (const std::string note = check_split(*run.task, found.of.value_or(Split::kTest));
      !note.empty())
    found.notes.push_back(note);
  return {{"metrics", found.metrics},
          {"attention", found.attention},
          {"items", found.items},
          {"notes", found.notes}};
}

Interval interval_of(double share, int64_t items) {
  if (items < 1) return {};
  constexpr double kDeviations = 1.959963984540054;  // of a normal distribution: 95 %
  const double n = static_cast<double>(items), z2 = kDeviations * kDeviations;
  const double centre = (share + z2 / (2 * n)) / (1 + z2 / n);
  const double half =
      kDeviations * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n);
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

}  // namespace fovea::systems
