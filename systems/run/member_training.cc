#include "systems/run/member_training.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "data/files/file.h"
#include "io/sha256.h"
#include "systems/run/provenance.h"
#include "systems/pages/report.h"
#include "systems/run/run_config.h"
#include "train/descent/finite.h"
#include "train/descent/fit.h"
#include "train/interrupt.h"
#include "train/ranks/agreement.h"
#include "train/run/tensor_file.h"
#include "train/weight_budget.h"

namespace fovea::systems {
namespace {

Json or_null(const std::string& sum) { return sum.empty() ? Json() : Json(sum); }

RunOptions with_ranks(RunOptions run_options, train::Ranks* ranks) {
  run_options.ranks = ranks;
  return run_options;
}

double rank_of(const RunOptions& run_options, const System& system, Task& task) {
  const auto* learner = dynamic_cast<GradientTask*>(&task);
  if (!learner || !system.recipe || learner->items(Split::kValidation) == 0) return 0;
  const Metrics metrics = task.evaluate(Split::kValidation).metrics;
  const auto found = metrics.find(run_options.options.text("monitor"));
  if (found == metrics.end()) return 0;
  return lower_is_better(found->first) ? found->second : -found->second;
}

}  // namespace

MemberTraining::MemberTraining(const System& system, const RunOptions& run_options, Json config,
                               train::Ranks* ranks)
    : system_(system),
      run_options_(with_ranks(run_options, ranks)),
      config_(std::move(config)),
      ranks_(ranks) {}

void MemberTraining::read(train::Progress& progress) {
  train::say_when_stopped("fovea: stopped before training began\n");
  torch::manual_seed(run_options_.seed);
  task_ = system_.make(run_options_);
  const Source source = source_of(config_);
  data_sum_ = read_items(*task_, source);
  if (const std::string words = task_->read_in_words(); !words.empty() && !source.path.empty())
    progress.line("read " + words);
  const data::ReadLog inputs;
  task_->prepare();
  // Generated items follow from the seed and need no record.
  split_ = data_sum_.empty() ? "" : split_bytes(*task_);
  config_["data_sha256"] = or_null(data_sum_);
  config_["inputs_sha256"] = or_null(inputs.sha256());
  config_["split_sha256"] = or_null(split_.empty() ? "" : io::sha256(split_));
}

void MemberTraining::build() {
  model_ = train::built(*task_);
  model_->to(run_options_.device);
}

// On the same data, from the same weights.
void MemberTraining::agree() const {
  Json facts = {{"initial weights (sha256)", train::sum_of(train::weights_of(*model_))}};
  for (const char* field : {"data_sha256", "inputs_sha256", "split_sha256"})
    facts[field] = config_.at(field).is_null() ? Json("none") : config_.at(field);
  train::agree(*ranks_, facts);
}

void MemberTraining::follow(train::Progress& progress) {
  agree();
  train::Fit fit(run_options_, model_, nullptr, configuration_sum(config_), progress, ranks_);
  fit.division = {.parts = parts_of(config_), .ordered = sums_are_ordered(config_)};
  task_->fit(fit);
  // Its share of what rank 0 does next, in fit() and report().
  const torch::NoGradGuard guard;
  model_->eval();
  rank_of(run_options_, system_, *task_);
  task_->evaluate(Split::kTest);
}

void MemberTraining::fit(train::Draft& draft, double save_every_seconds,
                         train::Progress& progress) {
  if (ranks_) agree();
  write_assets(draft);

  train::Fit fit(run_options_, model_, &draft, configuration_sum(config_), progress, ranks_);
  fit.division = {.parts = parts_of(config_), .ordered = sums_are_ordered(config_)};
  fit.save_every_seconds = save_every_seconds;
  task_->fit(fit);
  if (const std::string name = train::not_finite(train::weights_of(*model_)); !name.empty())
    throw InvalidArgument(fmt::format(
        "training diverged: weight '{}' is not finite; try a lower rate (--set rate=)", name));
  fit.finish();
  progress.finish();
  draft.write(kModelFile, train::tensor_bytes({train::weights_of(*model_), {{"format", "pt"}}}));

  train::say_when_stopped("fovea: stopped during evaluation; --resume continues from there\n");

  const torch::NoGradGuard guard;
  model_->eval();
  config_["rank"] = rank_of(run_options_, system_, *task_);
  write_assets(draft);
  draft.publish(program(), configuration_sum(config_));
}

Json MemberTraining::report() {
  train::say_when_stopped("fovea: stopped during evaluation; the weights are saved\n");
  const torch::NoGradGuard guard;
  Evaluation evaluation = task_->evaluate(Split::kTest);
  const Split of = evaluation.of.value_or(Split::kTest);
  if (const std::string note = check_split(*task_, of); !note.empty())
    evaluation.notes.push_back(note);
  const Judged judged{.data = data_sum_, .split = of, .device = run_options_.device.str()};
  return systems::report(config_, "", Split::kTest, evaluation, signature(config_, *task_, judged),
                         start_);
}

// Assets first, then the configuration that names them.
void MemberTraining::write_assets(train::Draft& draft) {
  const Assets assets = task_->assets();
  config_["facts"] = assets.facts;
  config_["files"] = Json::array();
  for (const auto& [name, bytes] : assets.files) {
    draft.write(name, bytes);
    config_["files"].push_back(name);
  }
  if (!split_.empty()) draft.write(kSplitFile, split_);
  draft.write(kConfigFile, config_.dump(2) + "\n");
}

}  // namespace fovea::systems
