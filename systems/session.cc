#include "systems/session.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "systems/machine.h"
#include "systems/report.h"
#include "systems/run_config.h"
#include "train/fit.h"
#include "train/task.h"
#include "train/tensor_file.h"
#include "train/weight_budget.h"

namespace fovea::systems {
namespace {

using train::RunFolder;

// What validation says of a finished member, less is better; without validation, all are equal.
double validation_rank(const RunFolder& folder) {
  const Json rank = read_config(folder).value("rank", Json(0.0));
  return rank.is_number() ? rank.get<double>() : 0.0;
}

// Where a RUN has members, their folders; otherwise the RUN itself.
std::vector<std::filesystem::path> member_folders(const std::filesystem::path& run) {
  const Json config = read_config(RunFolder(run));
  std::vector<std::filesystem::path> folders;
  for (const auto& name : config.value("members", Json::array()))
    folders.push_back(run / name.get<std::string>());
  if (folders.empty()) folders.push_back(run);
  return folders;
}

Run open_member(const std::filesystem::path& path, const std::string& device, int threads,
                const std::vector<std::string>& set, Use use) {
  const RunFolder folder(path);
  Run run;
  run.folder = path;
  run.config = read_config(folder);
  run.system = &find(run.config.at("system"));
  Settings settings = run.system->settings();
  settings.restore(run.config.at("options"));
  for (const std::string& assignment : set) settings.set_for(use, assignment);
  use_threads(threads);
  run.setting = std::make_shared<Setting>(
      Setting{std::move(settings), run.config.at("seed"), device_of(device)});
  if (!folder.has(kModelFile))
    throw InvalidArgument(fmt::format(
        "{}: training has not finished: `fovea train … --resume` continues it", path.string()));
  run.task = run.system->make(*run.setting);
  const Assets assets = read_assets(folder, run.config);
  try {
    run.task->restore(assets);
  } catch (const InvalidArgument& error) {  // it knows the entry or the file, not whose they are
    throw InvalidArgument(fmt::format("{}: {}", path.string(), error.what()));
  }
  run.model = train::built(*run.task);
  train::set_weights(*run.model, train::read_tensors((folder / kModelFile).string()).tensors,
                     (folder / kModelFile).string());
  run.model->to(run.setting->device);
  run.model->eval();
  return run;
}

}  // namespace

Run open(const std::filesystem::path& path, const std::string& device, int threads,
         const std::vector<std::string>& set, Use use) {
  const auto folders = member_folders(path);
  auto best = folders.front();
  for (const auto& folder : folders)
    if (validation_rank(RunFolder(folder)) < validation_rank(RunFolder(best))) best = folder;
  return open_member(best, device, threads, set, use);
}

void predict(Run& run, Input input, std::ostream& out) {
  const torch::NoGradGuard guard;
  run.task->predict(input, out);
}

Json evaluate(const std::filesystem::path& path, const std::string& data, const std::string& split,
              const std::string& device, int threads, const std::vector<std::string>& set) {
  Split wanted;
  try {
    wanted = data::split_from_name(split);
  } catch (const InvalidArgument& error) {
    throw UsageError(std::string("--") + error.what());
  }
  if (!data.empty() && wanted != Split::kTest)
    throw UsageError(
        "--split: --data brings items of its own, which are all test items; leave --split out");
  std::vector<Json> reports;
  for (const auto& folder : member_folders(path)) {
    Run run = open_member(folder, device, threads, set, Use::kEvaluate);
    const auto start = Clock::now();
    Source source = source_of(run.config);
    if (!data.empty()) source = {.path = data, .seed = source.seed, .all_test = true};
    run.task->read(source);
    const torch::NoGradGuard guard;
    const Evaluation evaluation = run.task->evaluate(wanted);
    reports.push_back(report(run.config, data, data::name_of(wanted), evaluation, start));
  }
  return reports.size() == 1 ? reports.front() : summary(reports);
}

}  // namespace fovea::systems
