#include "systems/run/training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>

#include "systems/run/machine.h"
#include "systems/run/member_training.h"
#include "systems/run/provenance.h"
#include "systems/pages/report.h"
#include "systems/run/run_config.h"
#include "train/interrupt.h"
#include "train/ranks/ranks.h"

namespace fovea::systems {
namespace {

namespace fs = std::filesystem;
using train::Draft;
using train::RunFolder;
using train::RunLock;

constexpr const char* kSummaryFile = "summary.json";

TrainRequest checked(const TrainRequest& request) {
  device_of(request.device);
  return request;
}

}  // namespace

OptionValues option_values_of(const System& system, const TrainRequest& request) {
  OptionValues option_values = system.option_values();
  for (const std::string& assignment : request.set) option_values.set(assignment);
  if (request.epochs) {
    if (!system.recipe)
      throw UsageError(fmt::format("--epochs: {} does not learn in epochs", system.info.name));
    if (*request.epochs < 0)
      throw UsageError(fmt::format("--epochs {}: expected at least 0", *request.epochs));
    if (option_values.is_set("epochs"))
      throw UsageError(fmt::format("--epochs {}: also given by --set epochs, expected one of them",
                                   *request.epochs));
    option_values.set("epochs", std::to_string(*request.epochs));
  }
  return option_values;
}

std::vector<Training::Member> Training::members_of(const TrainRequest& request) {
  if (request.seeds < 1)
    throw UsageError(fmt::format("--seeds {}: expected at least 1", request.seeds));
  if (request.folds == 1 || request.folds < 0)
    throw UsageError(fmt::format("--folds {}: expected at least 2", request.folds));
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

Training::Training(const TrainRequest& request, train::Progress& progress, train::Ranks* ranks)
    : request_(checked(request)),
      progress_(progress),
      system_(find(request.system)),
      option_values_(option_values_of(system_, request)),
      members_(members_of(request)),
      place_(request.out),
      draft_(request.out),
      ranks_(ranks) {
  use_threads(request.threads);  // checks the number
  lock_.emplace(request.out,
                request.only.empty() ? RunLock::Kind::kExclusive : RunLock::Kind::kShared);
  if (place_.made) lock_->take_folder_along();
  if (!lock_->taken_from().empty())
    progress.line(fmt::format("{}: {} ended without finishing; continuing its training",
                              request.out.string(), lock_->taken_from()));
  if (request.only.empty()) train::finish_publication(request.out);
  parts_ = choose_parts();
  check_room();
  threads_ = choose_threads();
  use_threads(threads_);
}

int Training::choose_threads() const {
  if (request_.threads > 0) return request_.threads;
  if (const auto before = config_before())
    return static_cast<int>(std::clamp<int64_t>(before->at("threads"), 1, 4096));
  if (request_.ranks > 0) return 1;  // the ranks are the threads
  const int share = std::max(1, all_threads() / static_cast<int>(names_of_all().size()));
  const bool worth =
      !system_.step_work || worth_threads(system_.step_work(option_values_, request_.data));
  return worth ? share : 1;
}

int64_t Training::choose_parts() const {
  int64_t parts = request_.parts;
  if (const auto before = config_before(); before && parts == 0)
    parts = parts_of(*before);
  else if (parts == 0)
    parts = request_.ranks > 0 ? std::max<int64_t>(kPartsOfRanks, request_.ranks) : 1;
  if (parts < request_.ranks)
    throw UsageError(fmt::format("--parts {}: expected at least {}, the number of ranks{}", parts,
                                 request_.ranks,
                                 request_.parts > 0 ? "" : " (the run was started with so few)"));
  if (parts > 1 && !system_.recipe)
    throw UsageError(fmt::format(
        "--parts, --workers and several ranks: {} does not learn by gradient descent, so there is "
        "nothing to divide",
        system_.info.name));
  return parts;
}

Json Training::config_of(const Member& member) const {
  Json config = {{"version", kConfigVersion},
                 {"system", request_.system},
                 {"data", request_.data.empty()
                              ? Json(nullptr)
                              : Json(fs::absolute(request_.data).lexically_normal().string())},
                 {"seed", member.seed},
                 {"data_seed", request_.data_seed},
                 {"fold", member.fold},
                 {"folds", request_.folds},
                 {"threads", at::get_num_threads()},
                 {"device", request_.device},
                 {"options", option_values_.json()}};
  if (parts_ > 1) config["parts"] = parts_;
  if (parts_ > 1 && request_.sums != kOrderedSums) config["sums"] = request_.sums;
  return config;
}

// The configuration of the RUN, whose parts are the members; `first` is the configuration of one of
// them.
Json Training::config_of_all(const Json& first) const {
  Json config = first;
  for (const char* own : {"inputs_sha256", "split_sha256"}) config.erase(own);
  config["seed"] = request_.seed;
  config["fold"] = 0;
  config["seeds"] = request_.seeds;
  config["members"] = names_of_all();
  return config;
}

// The names of every seed and fold, also if only one is trained here; a member without a name is
// the RUN itself.
std::vector<std::string> Training::names_of_all() const {
  TrainRequest all = request_;
  all.only.clear();
  std::vector<std::string> names;
  for (const Member& member : members_of(all)) names.push_back(member.name);
  return names;
}

Json Training::evaluate_place(const fs::path& place) const {
  return evaluate(place, "", "test", request_.device, threads_);
}

Json Training::train_member(const Member& member) {
  progress_.title(several() ? request_.system + " " + member.name : request_.system);
  const fs::path place = several() ? draft_ / member.name : request_.out;
  const Json config = config_of(member);
  if (several() && is_finished(place, config)) return evaluate_place(place);
  if (several() && !draft_.begun() && is_finished(request_.out, config_of_all(config)))
    return evaluate_place(request_.out / member.name);
  MemberTraining training(system_, {option_values_, member.seed, device_of(request_.device)},
                          config, ranks_);
  if (ranks_) ranks_->broadcast(config.dump(), kNextTraining);
  training.read(progress_);
  training.build();
  open_draft(several() ? config_of_all(training.config()) : training.config());
  // Of the whole RUN that is added to, now that the draft has its members.
  const bool finished = several() && is_finished(place, config);
  if (ranks_) ranks_->broadcast(finished ? kFinished : kUnfinished, kNextTraining);
  if (finished) return evaluate_place(place);
  if (!several()) {
    training.fit(draft_, request_.save_every_seconds, progress_);
    return training.report();
  }
  const Place own(place);
  const RunLock lock(place, RunLock::Kind::kExclusive);
  Draft draft(place);
  open_member_draft(draft, place, training.config());
  training.fit(draft, request_.save_every_seconds, progress_);
  return training.report();
}

std::vector<std::string> Training::hand_out() {
  if (!several()) return {};
  const Json asked = config_of_all(config_of(members_[0]));
  if (is_finished(request_.out, asked) && !draft_.begun()) return {};
  MemberTraining first(system_, {option_values_, members_[0].seed, device_of(request_.device)},
                       config_of(members_[0]));
  first.read(progress_);
  first.build();
  open_draft(config_of_all(first.config()));
  lock_->become(RunLock::Kind::kShared);
  std::vector<std::string> names;
  for (const Member& member : members_)
    if (!is_finished(draft_ / member.name, config_of(member))) names.push_back(member.name);
  return names;
}

Json Training::run() {
  const train::InterruptGuard guard;
  if (request_.only.empty()) {
    lock_->become(RunLock::Kind::kExclusive);
    const Json asked = several() ? config_of_all(config_of(members_[0])) : config_of(members_[0]);
    if (is_finished(request_.out, asked) && !draft_.begun()) return evaluate_place(request_.out);
  }
  std::vector<Json> reports;
  try {
    for (const Member& member : members_) reports.push_back(train_member(member));
  } catch (const InvalidArgument&) {
    // The user corrects the command and tries again. An empty draft would only ask for --overwrite.
    if (request_.only.empty()) draft_.discard_untrained();
    throw;
  }
  return several() && request_.only.empty() ? publish_all(reports) : reports.front();
}

Json Training::publish_all(const std::vector<Json>& reports) {
  // A member whose files were not all in their place when a disk failed is complete, and was not trained again.
  for (const Member& member : members_) train::finish_publication(draft_ / member.name);
  const Json out = summary(reports);
  const Json config = parse_config(draft_.read(kConfigFile), (draft_ / kConfigFile).string());
  draft_.write(kConfigFile, config.dump(2) + "\n");
  draft_.write(kSummaryFile, out.dump(2) + "\n");
  for (const Member& member : members_) {
    const RunFolder run(draft_ / member.name);
    for (const auto& [name, file] : run.manifest().files)
      draft_.take(member.name + "/" + name, file);
    train::Manifest own;
    own.add(member.name + "/" + train::kManifestFile, run.manifest().text());
    draft_.take(own.files.begin()->first, own.files.begin()->second);
  }
  draft_.publish(program(), configuration_sum(config));
  return out;
}

Json train(const TrainRequest& request, train::Progress& progress) {
  return Training(request, progress).run();
}

}  // namespace fovea::systems
