// The loop of gradient descent: batches, loss, step, schedule, clipping, validation, early
// stopping, checkpoints.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "data/batches.h"
#include "data/random.h"
#include "engine/simd/subnormals.h"
#include "train/descent/divided.h"
#include "train/descent/finite.h"
#include "train/descent/fit.h"
#include "train/descent/held_items.h"
#include "train/descent/kept_epochs.h"
#include "train/descent/optimiser.h"
#include "train/descent/recipe.h"
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

// "nan" without its sign, which has no meaning.
double unsigned_nan(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

class Descent {
 public:
  Descent(Fit& fit, GradientTask& task)
      : fit_(fit),
        task_(task),
        recipe_(recipe_of(fit.run_options().options)),
        lengths_(task.lengths()),
        optimiser_(task.parameter_groups(fit.model()), recipe_),
        kept_(recipe_, task) {
    const auto* const holder = dynamic_cast<const HeldItems*>(&task);
    const bool held = holder && holder->ranks_hold_items();
    Division division = fit.division;
    if (held) division.parts = fit.ranks() ? fit.ranks()->size() : 1;  // whatever was asked for
    if (division.parts == 1 && !fit.ranks()) return;
    std::vector<torch::Tensor> parameters;
    for (const ParameterGroup& group : task.parameter_groups(fit.model()))
      parameters.insert(parameters.end(), group.parameters.begin(), group.parameters.end());
    divided_.emplace(fit.model(), std::move(parameters), division, fit.ranks(),
                     held ? ItemsOfPart::kHeld : ItemsOfPart::kStretch);
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
    optimiser_.zero_grad();
    const Loss loss = gradient(batch);
    if (recipe_.clip > 0) optimiser_.clip(recipe_.clip);
    ++steps_;
    optimiser_.step(rate_factor(recipe_, steps_, epoch_, recipe_.epochs * batches_));
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
      return unless_diverged([&] { return task_.loss(items); });
    };
    if (divided_) {
      const Loss loss = divided_->compute(batch, loss_of, fmt::format("step {}", steps_ + 1));
      check_loss(loss);
      return loss;
    }
    const Loss loss = loss_of(batch);
    check_loss(loss);
    if (loss.mean.requires_grad()) loss.mean.backward();
    return loss;
  }

  // Reading the loss makes a step wait for the device. On the CPU it costs nothing.
  void check_loss(const Loss& loss) {
    constexpr int64_t kSteps = 32;
    if (!fit_.run_options().device.is_cpu() && steps_ % kSteps != 0) return;
    const double value = loss.mean.item<double>();
    if (!std::isfinite(value))
      stop_diverged(fmt::format("the loss is {}", unsigned_nan(value)), steps_ + 1);
    if (steps_ == 0) first_loss_ = value;
  }

  // A loss that is finite but a million times the first one has diverged as well: gates and bounded
  // activations keep numbers finite that mean nothing.
  void check_mean_loss(double loss) const {
    constexpr double kGrown = 1e6;
    if (!std::isfinite(loss))
      stop_diverged(fmt::format("the loss is {}", unsigned_nan(loss)), steps_);
    if (loss > kGrown * std::max(1.0, std::fabs(first_loss_)))
      stop_diverged(fmt::format("the loss is {:.3g}, {:.3g} at the first step,", loss, first_loss_),
                    steps_);
  }

  // The last step of an epoch can ruin the weights, and no loss follows that would show it. A
  // weight whose square overflows float32 is of no use in products or norms.
  void check_weights() const {
    constexpr double kLargest = 1.8e19;
    if (const std::string name = not_finite(weights_of(fit_.model())); !name.empty())
      stop_diverged(fmt::format("weight '{}' is not finite", name), steps_);
    for (const auto& parameter : fit_.model().named_parameters()) {
      const torch::Tensor& weight = parameter.value();
      if (weight.numel() == 0 || !weight.is_floating_point()) continue;
      const double largest = weight.detach().abs().max().item<double>();
      if (largest > kLargest)
        stop_diverged(fmt::format("weight '{}' is {:.3g}", parameter.key(), largest), steps_);
    }
  }

  // Attention refuses scores that are not finite before there is a loss to look at.
  template <class Call>
  std::invoke_result_t<const Call&> unless_diverged(const Call& call) const {
    try {
      return call();
    } catch (const InvalidArgument& error) {
      if (steps_ > 0 && std::string_view(error.what()).find("finite") != std::string_view::npos)
        stop_diverged(error.what(), steps_ + 1);
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

  // What was saved before stays as it is.
  [[noreturn]] void stop_diverged(const std::string& what, int64_t step) const {
    throw InvalidArgument(fmt::format(
        "{} at step {}, in epoch {}: training diverged; try a lower rate (--set rate=, now {}){}",
        what, step, epoch_ + 1, recipe_.rate,
        recipe_.clip > 0 ? "" : " or clipping (--set clip=1)"));
  }

  double mean_loss() const {
    return count_ ? loss_sum_.item<double>() / static_cast<double>(count_) : 0;
  }

  void end_epoch() {
    const double loss = mean_loss();
    check_mean_loss(loss);
    check_weights();
    fit_.model().eval();
    Metrics metrics;
    unless_lost([&] { metrics = validated(); });
    for (const auto& [name, value] : metrics)
      if (!std::isfinite(value))
        stop_diverged(fmt::format("validation {} is {}", name, unsigned_nan(value)), steps_);
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
    const auto validate = [&] { return unless_diverged([&] { return task_.validate(); }); };
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
  Optimiser optimiser_;
  std::optional<DividedGradient> divided_;  // where batches are divided into parts
  int64_t epoch_ = 0, batch_ = 0, batches_ = 0, steps_ = 0;
  int64_t count_ = 0;       // of the losses summed so far in this epoch
  torch::Tensor loss_sum_;  // on the device: reading it would make each step wait
  double first_loss_ = 0;   // of the first step
  std::vector<Metrics> history_;
  KeptEpochs kept_;
  Standing best_;
  int64_t best_epoch_ = -1;
  bool stopped_ = false;
};

void Descent::pause_point() {
  const bool stop = interrupted();
  if (stop || fit_.save_due()) {
    check_weights();
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
  put(out.tensors, "optimiser.", optimiser_.state());
  kept_.put_into(out);
  out.tensors["loss_sum"] = loss_sum_;
  out.tensors["first_loss"] = torch::tensor(first_loss_, torch::kFloat64);
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
  optimiser_.restore(take(saved.tensors, "optimiser."));
  kept_.restore(numbers, saved.tensors, fit_.model(), fit_.run_options().device);
  loss_sum_ = saved_tensor(saved.tensors, "loss_sum", torch::kFloat64, 0).to(loss_device());
  if (saved.tensors.contains("first_loss"))
    first_loss_ = saved_number(saved.tensors, "first_loss");  // none in an older state
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
