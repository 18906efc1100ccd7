// The loop of gradient descent: batches, loss, step, schedule, clipping, validation, early
// stopping, checkpoints.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>

#include "data/batches.h"
#include "data/random.h"
#include "engine/simd/subnormals.h"
#include "train/descent/divergence.h"
#include "train/descent/divided.h"
#include "train/descent/fit.h"
#include "train/descent/held_items.h"
#include "train/descent/kept_epochs.h"
#include "train/descent/optimiser.h"
#include "train/descent/recipe.h"
#include "train/descent/shared_optimiser.h"
#include "train/descent/together.h"
#include "train/fields.h"
#include "train/interrupt.h"

namespace fovea {

void GradientTask::fit(train::Fit& fit) { train::gradient_descent(fit, *this); }

namespace train {
namespace {

void set_generator(torch::Device device, const torch::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  generator.set_state(state);
}

class Descent {
 public:
  Descent(Fit& fit, GradientTask& task)
      : fit_(fit),
        task_(task),
        recipe_(recipe_of(fit.run_options().options)),
        lengths_(task.lengths()),
        kept_(recipe_, task),
        divergence_(recipe_) {
    const std::vector<ParameterGroup> groups = task.parameter_groups(fit.model());
    divide(groups);
    if (!updates_) updates_ = std::make_unique<Optimiser>(groups, recipe_);
  }

  void run() {
    check_monitor();
    // Drawing, dropout and whatever else a model takes from libtorch's generator starts from the
    // seed, and goes on from the saved state after a resume.
    torch::manual_seed(data::mix(fit_.run_options().seed, 0xF17));
    loss_sum_ = torch::zeros({}, torch::dtype(torch::kFloat64).device(loss_device()));
    if (const auto state = fit_.resume()) restore(*state);
    while (epoch_ < recipe_.epochs && !stopped_) run_epoch();
    fit_.save(state());  // more epochs may be asked for later
    if (!kept_.empty()) set_weights(fit_.model(), kept_.mean(), "the epochs kept");
    fit_.model().eval();
  }

 private:
  // If batches have parts, or there are ranks, which divide the optimiser's steps where they can.
  void divide(const std::vector<ParameterGroup>& groups) {
    const auto* const holder = dynamic_cast<const HeldItems*>(&task_);
    const bool held = holder && holder->ranks_hold_items();
    Ranks* const ranks = fit_.ranks();
    Division division = fit_.division;
    if (held) division.parts = ranks ? ranks->size() : 1;  // whatever was asked for
    if (division.parts == 1 && !ranks) return;
    std::vector<torch::Tensor> parameters;
    for (const ParameterGroup& group : groups)
      parameters.insert(parameters.end(), group.parameters.begin(), group.parameters.end());
    divided_.emplace(fit_.model(), std::move(parameters), division, ranks,
                     held ? ItemsOfPart::kHeld : ItemsOfPart::kStretch,
                     ranks ? SharedOptimiser::bytes_of(groups, ranks->size()) : 0);
    if (const std::string& why = divided_->why_they_travel(); !why.empty())
      fit_.progress().line(
          fmt::format("gradients go through Gloo, which is slower than shared memory: {}", why));
    if (!divided_->sums().in_shared_memory()) return;
    auto shared = std::make_unique<SharedOptimiser>(groups, recipe_, divided_->sums(), *ranks);
    divided_->leave_gradients_of(shared->own());
    updates_ = std::move(shared);
  }

  // A monitor that the user chose must be one that validation gives. Otherwise the mistake would be
  // found only after the first epoch or, without validation, never.
  void check_monitor() {
    if (!fit_.run_options().options.is_set("monitor")) return;
    fit_.model().eval();
    const torch::NoGradGuard guard;
    const Metrics metrics = task_.validate();
    if (metrics.empty())
      throw UsageError(fmt::format("--set monitor={}: no validation items, so nothing to monitor",
                                   recipe_.monitor));
    refuse_unless_given(metrics);
  }

  void refuse_unless_given(const Metrics& metrics) const {
    if (metrics.contains(recipe_.monitor)) return;
    std::string names;
    for (const auto& [name, value] : metrics) names += (names.empty() ? "" : ", ") + name;
    throw UsageError(fmt::format("--set monitor={}: expected one of {}", recipe_.monitor, names));
  }

  void run_epoch() {
    task_.begin_epoch(epoch_, history_);
    const uint64_t seed =
        data::mix(fit_.run_options().seed, 0xE90C + static_cast<uint64_t>(epoch_));
    const auto plan =
        data::batches(task_.items(Split::kTrain), lengths_,
                      {.items = recipe_.batch, .tokens = recipe_.batch_tokens, .seed = seed});
    if (plan.empty()) throw InvalidArgument("training split: no items, expected at least one");
    batches_ = static_cast<int64_t>(plan.size());
    if (batch_ > batches_)
      throw InvalidArgument(
          fmt::format("{}: batch {} of an epoch of {}", kStateFile, batch_, batches_));
    fit_.model().train();
    for (; batch_ < batches_; ++batch_) {
      pause_point();
      unless_lost([&] {
        step({plan[static_cast<size_t>(batch_)], data::mix(seed, static_cast<uint64_t>(batch_)),
              epoch_});
      });
    }
    end_epoch();
  }

  // Where losses are summed: on the device, so that a step does not wait for it. MPS has no
  // float64, so the CPU adds there.
  torch::Device loss_device() const {
    return fit_.run_options().device.is_mps() ? torch::kCPU : fit_.run_options().device;
  }

  void step(const Batch& batch) {
    updates_->zero_grad();
    const Loss loss = gradient(batch);
    update();
    ++steps_;
    loss_sum_ += loss.mean.detach().to(loss_sum_.device(), torch::kFloat64) *
                 static_cast<double>(loss.count);
    count_ += loss.count;
    Progress& progress = fit_.progress();
    if (progress.due())
      progress.step(
          epoch_ * batches_ + batch_ + 1, recipe_.epochs * batches_,
          fmt::format("epoch {}/{}  loss {:.4g}", epoch_ + 1, recipe_.epochs, mean_loss()));
  }

  // Leaves it in the parameters; returns the loss.
  Loss gradient(const Batch& batch) {
    const auto loss_of = [&](const Batch& items) {
      return divergence_.guard([&] { return task_.loss(items); }, at(steps_ + 1));
    };
    if (divided_) {
      const Loss loss = divided_->compute(batch, loss_of, fmt::format("step {}", steps_ + 1));
      divergence_.check_loss(loss.mean, at(steps_ + 1));
      return loss;
    }
    const Loss loss = loss_of(batch);
    divergence_.check_loss(loss.mean, at(steps_ + 1));
    if (loss.mean.requires_grad()) loss.mean.backward();
    return loss;
  }

  void update() {
    try {
      updates_->make(rate_factor(recipe_, steps_ + 1, epoch_, recipe_.epochs * batches_),
                     recipe_.clip, fmt::format("step {}", steps_ + 1));
    } catch (const RankLost&) {
      divided_->take_back();
      throw;
    }
  }

  // A step of which a rank is missing has changed nothing, so what came before it can be saved. Ranks
  // that are asked to stop lose each other: that is no failure.
  template <class Call>
  void unless_lost(const Call& call) {
    try {
      call();
    } catch (const RankLost&) {
      fit_.save(state());
      fit_.stop_if_interrupted(where());
      throw;
    }
  }

  double mean_loss() const {
    return count_ ? loss_sum_.item<double>() / static_cast<double>(count_) : 0;
  }

  void end_epoch() {
    const double loss = mean_loss();
    divergence_.check_mean_loss(loss, at(steps_));
    divergence_.check_weights(fit_.model(), at(steps_));
    fit_.model().eval();
    Metrics metrics;
    unless_lost([&] { metrics = validated(); });
    divergence_.check_validation(metrics, at(steps_));
    Json line = {{"epoch", epoch_ + 1},
                 {"step", steps_},
                 {"loss", loss},
                 {"rate", recipe_.rate * rate_factor(recipe_, std::max<int64_t>(steps_, 1), epoch_,
                                                     recipe_.epochs * batches_)}};
    if (!metrics.empty()) line["validation"] = metrics;
    fit_.record(std::move(line));
    history_.push_back(metrics);
    judge(metrics);
    kept_.keep(epoch_, metrics, fit_.model());
    ++epoch_;
    batch_ = 0;
    count_ = 0;
    loss_sum_.zero_();
  }

  // A signal during validation, which may take long, is obeyed there: the saved state is that of
  // the last step, and a resumed run begins with this validation.
  Metrics validated() {
    const torch::NoGradGuard guard;
    const auto validate = [&] {
      return divergence_.guard([&] { return task_.validate(); }, at(steps_ + 1));
    };
    try {
      if (!fit_.ranks()) return validate();
      const std::string after = fmt::format("after epoch {}", epoch_ + 1);
      check_same_weights(*fit_.ranks(), fit_.model(), after);
      return validate_together(*fit_.ranks(), fit_.model(), validate, "the validation " + after);
    } catch (const Interrupted&) {
      pause_point();
      throw;
    }
  }

  // Remembers the best epoch and stops when nothing has become better for `patience` epochs.
  void judge(const Metrics& metrics) {
    if (metrics.empty()) return;
    refuse_unless_given(metrics);
    const Standing now = standing(recipe_, task_, metrics);
    if (best_epoch_ < 0 || now < best_) {
      best_ = now;
      best_epoch_ = epoch_;
    } else if (recipe_.patience > 0 && epoch_ - best_epoch_ >= recipe_.patience) {
      stopped_ = true;
      fit_.progress().line(fmt::format("stopped after epoch {}: no better {} since epoch {}",
                                       epoch_ + 1, recipe_.monitor, best_epoch_ + 1));
    }
  }

  Moment at(int64_t step) const { return {step, epoch_ + 1}; }
  std::string where() const {
    return fmt::format("in epoch {}, after {} steps", epoch_ + 1, steps_);
  }
  void pause_point();
  State state() const;
  void restore(const State&);

  Fit& fit_;
  GradientTask& task_;
  const Recipe recipe_;
  const std::vector<int64_t> lengths_;
  std::optional<DividedGradient> divided_;  // where batches are divided into parts
  std::unique_ptr<Updates> updates_;
  int64_t epoch_ = 0, batch_ = 0, batches_ = 0, steps_ = 0;
  int64_t count_ = 0;       // of the losses summed so far in this epoch
  torch::Tensor loss_sum_;  // on the device: reading it would make each step wait
  std::vector<Metrics> history_;
  KeptEpochs kept_;
  Divergence divergence_;
  Standing best_;
  int64_t best_epoch_ = -1;
  bool stopped_ = false;
};

void Descent::pause_point() {
  const bool stop = interrupted();
  if (stop || fit_.save_due()) {
    divergence_.check_weights(fit_.model(), at(steps_));
    fit_.save(state());
  }
  fit_.stop_if_interrupted(where());
}

State Descent::state() const {
  State out;
  out.numbers = {{"epoch", epoch_},    {"batch", batch_},           {"steps", steps_},
                 {"count", count_},    {"best_epoch", best_epoch_}, {"stopped", stopped_},
                 {"history", history_}};
  put(out.tensors, "model.", copies(weights_of(fit_.model())));
  put(out.tensors, "optimiser.", updates_->state());
  kept_.put_into(out);
  out.tensors["loss_sum"] = loss_sum_;
  out.tensors["first_loss"] = torch::tensor(divergence_.first_loss(), torch::kFloat64);
  out.tensors["best_value"] = torch::tensor(best_.value, torch::kFloat64);
  out.tensors["best_loss"] = torch::tensor(best_.loss, torch::kFloat64);
  out.tensors["generator"] = at::globalContext().defaultGenerator(torch::kCPU).get_state();
  if (fit_.run_options().device.is_cuda())
    out.tensors["generator_device"] =
        at::globalContext().defaultGenerator(fit_.run_options().device).get_state();
  return out;
}

void Descent::restore(const State& saved) {
  const Fields numbers(saved.numbers, std::string(kStateFile) + ": ");
  epoch_ = numbers.integer("epoch", 0);
  batch_ = numbers.integer("batch", 0);
  steps_ = numbers.integer("steps", 0);
  count_ = numbers.integer("count", 0);
  best_epoch_ = numbers.integer("best_epoch", -1, std::max<int64_t>(epoch_ - 1, -1));
  stopped_ = numbers.flag("stopped");
  for (const Json& epoch : numbers.list("history")) {
    if (!epoch.is_object()) numbers.refuse("history", "a list of an epoch's metrics");
    Metrics& metrics = history_.emplace_back();
    const Fields fields(epoch, std::string(kStateFile) + ": history.");
    for (const auto& [name, value] : epoch.items()) metrics[name] = fields.number(name);
  }
  set_weights(fit_.model(), take(saved.tensors, "model."), kStateFile);
  updates_->restore(take(saved.tensors, "optimiser."));
  kept_.restore(numbers, saved.tensors, fit_.model(), fit_.run_options().device);
  loss_sum_ = saved_tensor(saved.tensors, "loss_sum", torch::kFloat64, 0).to(loss_device());
  if (saved.tensors.contains("first_loss"))  // not in an older state
    divergence_.set_first_loss(saved_number(saved.tensors, "first_loss"));
  best_.value = saved_number(saved.tensors, "best_value");
  if (saved.tensors.contains("best_loss")) best_.loss = saved_number(saved.tensors, "best_loss");
  set_generator(torch::kCPU, saved_tensor(saved.tensors, "generator", torch::kUInt8, 1));
  if (saved.tensors.contains("generator_device"))
    set_generator(fit_.run_options().device, saved.tensors.at("generator_device"));
}

}  // namespace

void gradient_descent(Fit& fit, GradientTask& task) {
  // Weight decay moves the weights of an input that is always zero through the subnormal numbers,
  // and the optimiser's moments after them. On such tables that takes half of a step's time.
  const engine::FlushSubnormals flush;
  const SavesWhenAsked saves;
  Descent(fit, task).run();
}

}  // namespace train
}  // namespace fovea
