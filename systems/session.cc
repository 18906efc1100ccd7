#include "systems/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <chrono>
#include <cmath>

#include "train/fit.h"
#include "train/interrupt.h"
#include "train/run_folder.h"
#include "train/task.h"
#include "train/tensor_file.h"

namespace fovea::systems {
namespace {

using train::RunFolder;
using Clock = std::chrono::steady_clock;
constexpr const char* kConfig = "config.json";
constexpr const char* kModel = "model.safetensors";
constexpr int kConfigVersion = 1;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

torch::Device device_of(const std::string& name) {
  torch::Device device = torch::kCPU;
  try {
    device = torch::Device(name);
  } catch (const c10::Error&) {
    throw UsageError(fmt::format("--device {}: expected cpu, cuda or cuda:N", name));
  }
  if (device.is_cuda() && !torch::cuda::is_available())
    throw UsageError(fmt::format("--device {}: this libtorch sees no CUDA device; use cpu", name));
  return device;
}

void use_threads(int threads) {
  if (threads < 0) throw UsageError(fmt::format("--threads {}: expected at least 1", threads));
  if (threads > 0) at::set_num_threads(threads);
}

// One training: a system, its settings, one seed, one fold.
struct Member {
  std::string name;  // its folder within the RUN; empty: the RUN itself
  uint64_t seed;
  int64_t fold;
};

std::vector<Member> members_of(const TrainRequest& request) {
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
    settings.set("epochs", std::to_string(*request.epochs));
  }
  return settings;
}

Json read_config(const RunFolder& folder) {
  Json config;
  try {
    config = Json::parse(folder.read(kConfig));
  } catch (const Json::exception& error) {
    throw InvalidArgument(
        fmt::format("{}: not JSON: {}", (folder / kConfig).string(), error.what()));
  }
  if (!config.is_object() || config.value("version", 0) != kConfigVersion ||
      !config.contains("system"))
    throw InvalidArgument(fmt::format("{}: expected a run of version {}",
                                      (folder / kConfig).string(), kConfigVersion));
  return config;
}

Source source_of(const Json& config) {
  return {.path = config.at("data").is_null() ? "" : config.at("data").get<std::string>(),
          .seed = config.at("data_seed"),
          .fold = config.at("fold"),
          .folds = config.at("folds")};
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

void write_assets(const RunFolder& folder, Json& config, const Assets& assets) {
  config["facts"] = assets.facts;
  config["files"] = Json::array();
  for (const auto& [name, bytes] : assets.files) {
    folder.write(name, bytes);
    config["files"].push_back(name);
  }
  folder.write(kConfig, config.dump(2) + "\n");
}

Assets read_assets(const RunFolder& folder, const Json& config) {
  Assets assets;
  assets.facts = config.at("facts");
  for (const auto& name : config.at("files")) {
    const std::string file = name.get<std::string>();
    if (file.find('/') != std::string::npos)
      throw InvalidArgument(
          fmt::format("{}: '{}' is not a file of the run", (folder / kConfig).string(), file));
    assets.files[file] = folder.read(file);
  }
  return assets;
}

// "exact_15" before "exact_100": runs of digits count as numbers.
struct ByNumber {
  bool operator()(const std::string& a, const std::string& b) const {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
      if (digit(a[i]) && digit(b[j])) {
        uint64_t first = 0, second = 0;
        while (i < a.size() && digit(a[i]))
          first = 10 * first + static_cast<uint64_t>(a[i++] - '0');
        while (j < b.size() && digit(b[j]))
          second = 10 * second + static_cast<uint64_t>(b[j++] - '0');
        if (first != second) return first < second;
      } else if (a[i] != b[j]) {
        return a[i] < b[j];
      } else {
        ++i, ++j;
      }
    }
    return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
  }
};
template <class Value>
using Figures = std::map<std::string, Value, ByNumber>;

Json report(const Json& config, const std::string& data, const std::string& split,
            const Evaluation& evaluation, double seconds) {
  Json out = {{"system", config.at("system")},
              {"data", !data.empty()                 ? Json(data)
                       : config.at("data").is_null() ? Json("generated")
                                                     : config.at("data")},
              {"split", evaluation.of ? data::name_of(*evaluation.of) : split},
              {"items", evaluation.items},
              {"seed", config.at("seed")},
              {"metrics", Figures<double>(evaluation.metrics.begin(), evaluation.metrics.end())},
              {"attention", evaluation.attention},
              {"seconds", seconds}};
  if (!evaluation.notes.empty()) out["notes"] = evaluation.notes;
  return out;
}

// Each figure of the members in which it is defined.
Figures<std::vector<double>> gathered(const std::vector<Json>& reports, const char* part) {
  Figures<std::vector<double>> out;
  for (const Json& one : reports)
    for (const auto& [name, value] : one.at(part).items()) out[name].push_back(value.get<double>());
  return out;
}

// Means over members, spread as standard deviation (n - 1).
Json summary(const std::vector<Json>& reports) {
  Json out = reports.front();
  double seconds = 0;
  for (const Json& one : reports) seconds += one.at("seconds").get<double>();
  out["seconds"] = seconds;
  out.erase("notes");
  out["spread"] = {{"metrics", Json::object()}, {"attention", Json::object()}};
  for (const char* part : {"metrics", "attention"}) {
    out[part] = Json::object();
    for (const auto& [name, values] : gathered(reports, part)) {
      double sum = 0, squares = 0;
      for (const double value : values) sum += value;
      const auto n = static_cast<double>(values.size());
      for (const double value : values) squares += std::pow(value - sum / n, 2);
      out[part][name] = sum / n;
      out["spread"][part][name] = values.size() > 1 ? std::sqrt(squares / (n - 1)) : 0.0;
      if (values.size() < reports.size())
        out["notes"].push_back(fmt::format("{}: the mean of {} of {} runs, undefined in the others",
                                           name, values.size(), reports.size()));
    }
  }
  out["runs"] = reports;
  return out;
}

// What validation says of a finished member, less is better; without validation, all are equal.
double validation_rank(const RunFolder& folder) {
  const Json config = read_config(folder);
  return config.value("rank", 0.0);
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
  const auto start = Clock::now();  // the report's seconds: reading, training and evaluating
  const RunFolder folder(member.name.empty() ? request.out : request.out / member.name);
  Json config = config_of(request, member, settings);
  if (request.resume && folder.has(kConfig)) check_resumable(folder, read_config(folder), config);
  folder.create();

  const Setting setting{settings, member.seed, device_of(request.device)};
  torch::manual_seed(member.seed);
  const std::unique_ptr<Task> task = system.make(setting);
  task->read(source_of(config));
  task->prepare();
  const std::shared_ptr<torch::nn::Module> model = task->build();
  model->to(setting.device);
  write_assets(folder, config, task->assets());

  train::Fit fit(setting, model, folder, progress);
  fit.save_every_seconds = request.save_every_seconds;
  task->fit(fit);
  fit.finish();
  progress.finish();
  folder.write(kModel, train::tensor_bytes({train::weights_of(*model), {{"format", "pt"}}}));

  const torch::NoGradGuard guard;
  model->eval();
  config["rank"] = rank_of(setting, system, *task);
  write_assets(folder, config, task->assets());
  const Evaluation evaluation = task->evaluate(Split::kTest);
  return report(config, "", "test", evaluation, seconds_since(start));
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
                const std::vector<std::string>& set) {
  const RunFolder folder(path);
  Run run;
  run.folder = path;
  run.config = read_config(folder);
  run.system = &find(run.config.at("system"));
  Settings settings = run.system->settings();
  settings.restore(run.config.at("options"));
  for (const std::string& assignment : set) settings.set(assignment);
  use_threads(threads);
  run.setting = std::make_shared<Setting>(
      Setting{std::move(settings), run.config.at("seed"), device_of(device)});
  if (!folder.has(kModel))
    throw InvalidArgument(fmt::format(
        "{}: training has not finished: `fovea train … --resume` continues it", path.string()));
  run.task = run.system->make(*run.setting);
  run.task->restore(read_assets(folder, run.config));
  run.model = run.task->build();
  train::set_weights(*run.model, train::read_tensors((folder / kModel).string()).tensors,
                     (folder / kModel).string());
  run.model->to(run.setting->device);
  run.model->eval();
  return run;
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
    if (!RunFolder(place).has(kConfig) || request.resume) continue;
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
  folder.write(kConfig, config.dump(2) + "\n");
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

Run open(const std::filesystem::path& path, const std::string& device, int threads,
         const std::vector<std::string>& set) {
  const auto folders = member_folders(path);
  auto best = folders.front();
  for (const auto& folder : folders)
    if (validation_rank(RunFolder(folder)) < validation_rank(RunFolder(best))) best = folder;
  return open_member(best, device, threads, set);
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
    Run run = open_member(folder, device, threads, set);
    const auto start = Clock::now();
    Source source = source_of(run.config);
    if (!data.empty()) source = {.path = data, .seed = source.seed, .all_test = true};
    run.task->read(source);
    const torch::NoGradGuard guard;
    const Evaluation evaluation = run.task->evaluate(wanted);
    reports.push_back(
        report(run.config, data, data::name_of(wanted), evaluation, seconds_since(start)));
  }
  return reports.size() == 1 ? reports.front() : summary(reports);
}

}  // namespace fovea::systems
