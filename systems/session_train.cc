// Training a RUN: one member, or several seeds and folds.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>

#include "systems/machine.h"
#include "systems/report.h"
#include "systems/run_config.h"
#include "systems/session.h"
#include "train/finite.h"
#include "train/fit.h"
#include "train/interrupt.h"
#include "train/task.h"
#include "train/tensor_file.h"
#include "train/weight_budget.h"

namespace fovea::systems {
namespace {

using train::RunFolder;

// One training: a system, its settings, one seed, one fold.
struct Member {
  std::string name;  // its folder within the RUN; empty: the RUN itself
  uint64_t seed;
  int64_t fold;
};

std::vector<Member> members_of(const TrainRequest& request) {
  if (request.seeds > kMostMembers / std::max<int64_t>(request.folds, 1))
    throw UsageError(fmt::format("--seeds {}, --folds {}: expected at most {} runs in all",
                                 request.seeds, request.folds, kMostMembers));
  std::vector<Member> members;
  std::vector<std::string> names;
  for (int64_t fold = 0; fold < std::max<int64_t>(request.folds, 1); ++fold) {
    for (int64_t repeat = 0; repeat < request.seeds; ++repeat) {
      const uint64_t seed = request.seed + static_cast<uint64_t>(repeat);
      std::string name;
      if (request.folds > 0) name = fmt::format("fold-{}", fold + 1);
      if (request.seeds > 1) name += fmt::format("{}seed-{}", name.empty() ? "" : "-", seed);
      names.push_back(name);
      if (request.only.empty() || request.only == name) members.push_back({name, seed, fold});
    }
  }
  if (members.empty())
    throw UsageError(
        fmt::format("--only {}: expected one of {}", request.only, fmt::join(names, ", ")));
  return members;
}

Settings settings_of(const System& system, const TrainRequest& request) {
  Settings settings = system.settings();
  for (const std::string& assignment : request.set) settings.set(assignment);
  if (request.epochs) {
    if (!system.recipe)
      throw UsageError(fmt::format("--epochs: {} does not learn in epochs", system.info.name));
    if (*request.epochs < 0)
      throw UsageError(fmt::format("--epochs {}: expected at least 0", *request.epochs));
    if (settings.is_set("epochs"))
      throw UsageError(
          fmt::format("--epochs {}: --set epochs gives another; one is enough", *request.epochs));
    settings.set("epochs", std::to_string(*request.epochs));
  }
  return settings;
}

Json config_of(const TrainRequest& request, const Member& member, const Settings& settings) {
  return {{"version", kConfigVersion},
          {"system", request.system},
          {"data", request.data.empty()
                       ? Json(nullptr)
                       : Json(std::filesystem::absolute(request.data).lexically_normal().string())},
          {"seed", member.seed},
          {"data_seed", request.data_seed},
          {"fold", member.fold},
          {"folds", request.folds},
          {"threads", at::get_num_threads()},
          {"device", request.device},
          {"options", settings.json()}};
}

// A run goes on only as what it was; the number of epochs may grow.
void check_resumable(const RunFolder& folder, const Json& before, const Json& now) {
  for (const char* field : {"system", "data", "seed", "data_seed", "fold", "folds"})
    if (before.at(field) != now.at(field))
      throw UsageError(fmt::format("--resume: {} was started with {} {}, not {}",
                                   folder.path().string(), field, before.at(field).dump(),
                                   now.at(field).dump()));
  for (const auto& [name, value] : now.at("options").items())
    if (name != "epochs" && before.at("options").value(name, Json()) != value)
      throw UsageError(fmt::format("--resume: {} was started with {}={}, not {}",
                                   folder.path().string(), name,
                                   before.at("options").value(name, Json()).dump(), value.dump()));
}

double rank_of(const Setting& setting, const System& system, Task& task) {
  const auto* learner = dynamic_cast<GradientTask*>(&task);
  if (!learner || !system.recipe || learner->items(Split::kValidation) == 0) return 0;
  const Metrics metrics = task.evaluate(Split::kValidation).metrics;
  const auto found = metrics.find(setting.options.text("monitor"));
  if (found == metrics.end()) return 0;
  return lower_is_better(found->first) ? found->second : -found->second;
}

Json train_member(const System& system, const TrainRequest& request, const Member& member,
                  const Settings& settings, train::Progress& progress) {
  train::say_when_stopped("fovea: stopped before training began\n");
  const auto start = Clock::now();  // the report's seconds: reading, training and evaluating
  const RunFolder folder(member.name.empty() ? request.out : request.out / member.name);
  Json config = config_of(request, member, settings);
  if (request.resume && folder.has(kConfigFile))
    check_resumable(folder, read_config(folder), config);
  folder.create();

  const Setting setting{settings, member.seed, device_of(request.device)};
  torch::manual_seed(member.seed);
  const std::unique_ptr<Task> task = system.make(setting);
  task->read(source_of(config));
  if (const std::string words = task->read_in_words(); !words.empty() && !request.data.empty())
    progress.line("read " + words);
  task->prepare();
  const std::shared_ptr<torch::nn::Module> model = train::built(*task);
  model->to(setting.device);
  write_assets(folder, config, task->assets());

  train::Fit fit(setting, model, folder, progress);
  fit.save_every_seconds = request.save_every_seconds;
  task->fit(fit);
  if (const std::string name = train::not_finite(train::weights_of(*model)); !name.empty())
    throw InvalidArgument(fmt::format(
        "training diverged: weight '{}' is not finite; try a lower rate (--set rate=)", name));
  fit.finish();
  progress.finish();
  folder.write(kModelFile, train::tensor_bytes({train::weights_of(*model), {{"format", "pt"}}}));
  train::say_when_stopped("fovea: stopped while judging; the weights are saved\n");

  const torch::NoGradGuard guard;
  model->eval();
  config["rank"] = rank_of(setting, system, *task);
  write_assets(folder, config, task->assets());
  const Evaluation evaluation = task->evaluate(Split::kTest);
  return report(config, "", "test", evaluation, start);
}

}  // namespace

void begin(const TrainRequest& request) {
  settings_of(find(request.system), request);
  if (request.seeds < 1)
    throw UsageError(fmt::format("--seeds {}: expected at least 1", request.seeds));
  if (request.folds == 1 || request.folds < 0)
    throw UsageError(fmt::format("--folds {}: expected at least 2", request.folds));
  // A RUN of several that was stopped has members and nothing else.
  std::vector<std::filesystem::path> places;
  if (request.only.empty()) places.push_back(request.out);
  for (const Member& member : members_of(request)) places.push_back(request.out / member.name);
  for (const auto& place : places) {
    if (!RunFolder(place).has(kConfigFile) || request.resume) continue;
    if (!request.overwrite)
      throw UsageError(
          fmt::format("{}: holds a run already: --resume continues it, --overwrite replaces it",
                      request.out.string()));
    std::filesystem::remove_all(place);
  }
}

Json train(const TrainRequest& request, train::Progress& progress) {
  begin(request);
  const System& system = find(request.system);
  const Settings settings = settings_of(system, request);
  use_threads(request.threads);
  const train::InterruptGuard guard;
  const std::vector<Member> members = members_of(request);
  std::vector<Json> reports;
  for (const Member& member : members) {
    progress.title(member.name.empty() ? request.system : request.system + " " + member.name);
    reports.push_back(train_member(system, request, member, settings, progress));
  }
  if (members[0].name.empty() || !request.only.empty()) return reports.front();
  Json config = config_of(request, members[0], settings);
  for (const Member& member : members) config["members"].push_back(member.name);
  const RunFolder folder(request.out);
  folder.write(kConfigFile, config.dump(2) + "\n");
  const Json out = summary(reports);
  folder.write("summary.json", out.dump(2) + "\n");
  return out;
}

std::vector<std::string> member_names(const TrainRequest& request) {
  std::vector<std::string> names;
  for (const Member& member : members_of(request))
    if (!member.name.empty()) names.push_back(member.name);
  return names;
}

}  // namespace fovea::systems
