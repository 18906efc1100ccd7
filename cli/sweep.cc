#include "cli/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>

#include "cli/verbs/verbs.h"
#include "systems/run/training.h"
#include "systems/system.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

// "width=16,32" as {"width=16", "width=32"}.
std::vector<std::string> assignments_of(const std::string& sweep) {
  const size_t equals = sweep.find('=');
  const auto refuse = [&] {
    throw UsageError(fmt::format("--sweep {}: expected name=value,value,…", sweep));
  };
  if (equals == std::string::npos || equals == 0) refuse();
  std::vector<std::string> out;
  for (size_t from = equals + 1; from <= sweep.size();) {
    const size_t end = std::min(sweep.find(',', from), sweep.size());
    if (end == from) refuse();
    out.push_back(sweep.substr(0, equals + 1) + sweep.substr(from, end - from));
    from = end + 1;
  }
  return out;
}

// Any text can be a value, but not every text can be the name of a folder.
std::string folder_name(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return c == '/' || static_cast<unsigned char>(c) < 32; }, '_');
  return text;
}

void check_options(const systems::TrainRequest& request, const std::vector<std::string>& swept) {
  OptionValues values = systems::find(request.system).option_values();
  for (const std::string& assignment : request.set) values.set(assignment);
  std::set<std::string> names;
  for (const std::string& assignment : swept) {
    const std::string name = assignment.substr(0, assignment.find('='));
    if (values.is_set(name))
      throw UsageError(fmt::format("--sweep {}: also given by --set, or swept twice", name));
    OptionValues(values).set(assignment);
    names.insert(name);
  }
}

void check_room(const systems::TrainRequest& whole, const std::vector<Job>& runs) {
  if (train::RunFolder::is_whole(whole.out))
    throw UsageError(fmt::format("--out {}: holds a run; a sweep takes a folder of its own",
                                 whole.out.string()));
  if (whole.resume || whole.overwrite) return;
  for (const Job& run : runs) {
    std::error_code ignored;
    if (fs::exists(run.request.out, ignored) && !fs::is_empty(run.request.out, ignored))
      throw UsageError(
          fmt::format("{}: holds {} already: --resume continues the sweep, --overwrite replaces it",
                      whole.out.string(), run.name));
  }
}

}  // namespace

std::vector<Job> sweep_of(const systems::TrainRequest& request,
                          const std::vector<std::string>& sweeps) {
  if (!request.only.empty())
    throw UsageError(fmt::format("--only {}: not with --sweep", request.only));
  std::vector<Job> runs = {{"", request}};
  std::set<std::string> swept;
  for (const std::string& sweep : sweeps) {
    const std::vector<std::string> values = assignments_of(sweep);
    if (!swept.insert(sweep.substr(0, sweep.find('='))).second)
      throw UsageError(fmt::format("--sweep {}: its option is swept twice", sweep));
    check_options(request, values);
    std::vector<Job> next;
    for (const Job& run : runs)
      for (const std::string& value : values) {
        Job& one = next.emplace_back(run);
        one.name += (one.name.empty() ? "" : ",") + value;
        one.request.set.push_back(value);
      }
    runs = std::move(next);
    if (runs.size() > systems::kMostMembers)
      throw UsageError(
          fmt::format("--sweep: {} runs, expected at most {}", runs.size(), systems::kMostMembers));
  }
  std::set<std::string> folders;
  for (Job& run : runs) {
    if (!folders.insert(folder_name(run.name)).second)
      throw UsageError(fmt::format("--sweep: {} occurs twice", run.name));
    run.request.out = request.out / folder_name(run.name);
  }
  check_room(request, runs);
  return runs;
}

std::vector<Compared> train_sweep(const std::vector<Job>& runs, int jobs,
                                  train::Progress& progress) {
  std::vector<Job> left = runs;
  if (jobs > 1) {
    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const int share = std::max(1, cores / std::min(jobs, static_cast<int>(runs.size())));
    for (Job& run : left)  // one that was interrupted continues
      run.request.resume = !run.request.overwrite;
    const int threads = runs.front().request.threads;
    train_side_by_side(left, {.jobs = jobs, .threads = threads > 0 ? threads : share}, progress);
    for (Job& run : left) run.request.overwrite = false, run.request.resume = true;
  }
  std::vector<Compared> all;
  for (const Job& run : left) {
    systems::Training training(run.request, progress);
    all.push_back({run.name, training.run()});
    all.back().report["run"] = run.request.out.string();
  }
  return all;
}

std::string sweep_table(const std::vector<Compared>& all) {
  std::vector<std::vector<std::string>> rows = {{"sweep"}};
  const std::vector<std::string> figures = figures_of(all);
  rows[0].insert(rows[0].end(), figures.begin(), figures.end());
  for (const Compared& one : all) {
    rows.push_back({one.name});
    for (const std::string& figure : figures) rows.back().push_back(figure_text(one, figure));
  }
  return aligned(rows);
}

}  // namespace fovea::cli
