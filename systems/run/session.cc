#include "systems/run/session.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <iterator>

#include "systems/run/machine.h"
#include "systems/run/naming.h"
#include "systems/run/provenance.h"
#include "systems/pages/report.h"
#include "systems/run/run_config.h"
#include "train/descent/fit.h"
#include "train/ranks/agreement.h"
#include "train/run/tensor_file.h"
#include "train/task.h"
#include "train/weight_budget.h"

namespace fovea::systems {
namespace {

using train::RunFolder;

// The folders of a RUN's members, or the RUN itself if it has none.
std::vector<RunFolder> member_folders(const std::filesystem::path& path) {
  const RunFolder run(path);
  std::vector<RunFolder> folders;
  for (const auto& name : read_config(run).value("members", Json::array()))
    folders.push_back(run.member(name.get<std::string>()));
  if (folders.empty()) folders.push_back(run);
  return folders;
}

// The system of a configuration and its options; an error names the file.
OptionValues restored_options(Run& run, const std::string& path) {
  try {
    run.system = &find(run.config.at("system"));
    OptionValues values = run.system->option_values();
    values.restore(run.config.at("options"));
    return values;
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(path + ": " + error.what());
  }
}

Run open_member(const RunFolder& folder, const std::string& device, int threads,
                const std::vector<std::string>& set, Use use, train::Ranks* ranks) {
  Run run;
  run.folder = std::make_shared<RunFolder>(folder);
  run.config = read_config(folder);
  OptionValues option_values = restored_options(run, (folder / kConfigFile).string());
  for (const std::string& assignment : set) option_values.set_for(use, assignment);
  use_threads(threads);
  run.run_options = std::make_shared<RunOptions>(
      RunOptions{std::move(option_values), run.config.at("seed"), device_of(device), ranks});
  run.task = run.system->make(*run.run_options);
  const Assets assets = read_assets(folder, run.config);
  run.model = naming(folder.path(), [&] {
    run.task->restore(assets);
    return train::built(*run.task);
  });
  const std::string weights = (folder / kModelFile).string();
  train::set_weights(*run.model, train::parse_tensors(folder.read(kModelFile), weights).tensors,
                     weights);
  run.model->to(run.run_options->device);
  run.model->eval();
  if (ranks)
    train::agree(*ranks,
                 {{"weights of the RUN (sha256)", train::sum_of(train::weights_of(*run.model))},
                  {"option", run.run_options->options.json()}});
  return run;
}

std::string split_of(const RunFolder& folder) {
  return folder.has(kSplitFile) ? folder.read(kSplitFile) : "";
}

}  // namespace

Run open(const std::filesystem::path& path, const std::string& device, int threads,
         const std::vector<std::string>& set, Use use, train::Ranks* ranks) {
  // The validation figure of each, less is better; without validation all are equal.
  const auto rank = [](const RunFolder& folder) {
    const Json rank = read_config(folder).value("rank", Json(0.0));
    return rank.is_number() ? rank.get<double>() : 0.0;
  };
  const std::vector<RunFolder> folders = member_folders(path);
  const RunFolder* best = &folders.front();
  for (const RunFolder& folder : folders)
    if (rank(folder) < rank(*best)) best = &folder;
  return open_member(*best, device, threads, set, use, ranks);
}

void predict(Run& run, Input input, std::ostream& out) {
  const torch::NoGradGuard guard;
  run.task->predict(input, out);
}

Json evaluate(const std::filesystem::path& path, const std::string& data, const std::string& split,
              const std::string& device, int threads, const std::vector<std::string>& set,
              train::Ranks* ranks) {
  Split wanted;
  try {
    wanted = data::split_from_name(split);
  } catch (const InvalidArgument& error) {
    throw UsageError(std::string("--") + error.what());
  }
  if (!data.empty() && wanted != Split::kTest)
    throw UsageError(
        "--split: given with --data, whose items are all test items; leave --split out");
  std::vector<Json> reports;
  for (const RunFolder& folder : member_folders(path)) {
    Run run = open_member(folder, device, threads, set, Use::kEvaluate, ranks);
    const auto start = Clock::now();
    Source source = source_of(run.config);
    if (!data.empty()) source = {.path = data, .seed = source.seed, .all_test = true};
    const std::string sum = read_items(run, source);
    if (ranks) train::agree(*ranks, {{"data (sha256)", sum}});
    using Notes = std::vector<std::string>;
    const auto notes_on = [&](Split judged) {
      return data.empty()
                 ? Notes{check_own_data(run.config, split_of(folder), *run.task, judged, sum),
                         check_split(*run.task, judged)}
                 : Notes{check_other_data(split_of(folder), *run.task)};
    };
    Notes notes = notes_on(wanted);
    const torch::NoGradGuard guard;
    // What is wrong with other data names their file.
    const auto judge = [&] { return run.task->evaluate(wanted); };
    Evaluation evaluation = data.empty() ? naming(folder.path(), judge) : judge();
    if (evaluation.of) notes = notes_on(*evaluation.of);  // the requested one had no items
    std::copy_if(notes.begin(), notes.end(), std::back_inserter(evaluation.notes),
                 [](const std::string& note) { return !note.empty(); });
    const Judged judged{.data = sum,
                        .split = evaluation.of.value_or(wanted),
                        .other_data = !data.empty(),
                        .device = run.run_options->device.str()};
    Json used = run.config;
    used["options"] = run.run_options->options.json();  // `--set` may have changed some
    const std::string signed_by = signature(used, *run.task, judged);
    reports.push_back(naming(folder.path(), [&] {  // it refuses what is not finite
      return report(run.config, data, wanted, evaluation, signed_by, start);
    }));
  }
  return reports.size() == 1 ? reports.front() : summary(reports);
}

}  // namespace fovea::systems
