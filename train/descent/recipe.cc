#include "train/descent/recipe.h"

#include <algorithm>
#include <cmath>

namespace fovea::train {

std::vector<Option> options_of(const Recipe& r) {
  return {
      Option("epochs", r.epochs, "number of passes over the training items").between(0, 10000000),
      Option("batch", r.batch, "number of items in a batch").between(1, 1000000000),
      Option("batch_tokens", r.batch_tokens,
             "total length of a batch in place of a number of items; 0: off")
          .between(0, 1000000000),
      Option("optimiser", r.optimiser.c_str(), "update rule")
          .among({"sgd", "adam", "adamw", "adagrad", "rmsprop", "adadelta"}),
      Option("rate", r.rate, "learning rate").at_least(0),
      Option("momentum", r.momentum, "momentum of sgd and rmsprop").between(0, 1),
      Option("beta1", r.beta1, "adam's decay of the mean; adadelta's rho").between(0, 1),
      Option("beta2", r.beta2, "adam's decay of the square; rmsprop's alpha").between(0, 1),
      Option("epsilon", r.epsilon,
             "small number added to the denominator of adam, adagrad, rmsprop and adadelta")
          .at_least(0),
      Option("weight_decay", r.weight_decay, "factor of the L2 penalty (decoupled in adamw)")
          .at_least(0),
      Option("schedule", r.schedule.c_str(), "schedule of the learning rate")
          .among({"constant", "inverse_sqrt", "step", "cosine", "linear", "exponential"}),
      Option("warmup", r.warmup, "number of steps of linear warm-up").between(0, 1000000000),
      Option("decay", r.decay, "factor of the step and exponential schedules").between(0, 1),
      Option("decay_every", r.decay_every,
             "number of epochs between two factors of the step schedule")
          .between(1, 10000000),
      Option("decay_from", r.decay_from,
             "epoch of the step schedule's first factor; 0: decay_every")
          .between(0, 10000000),
      Option("clip", r.clip, "largest norm of the gradient; 0: no clipping").at_least(0),
      Option("patience", r.patience,
             "number of epochs without a better validation metric before stopping; 0: never")
          .between(0, 10000000),
      Option("monitor", r.monitor.c_str(), "validation metric that decides which weights are best"),
      Option("keep", r.keep.c_str(), "which weights are kept: of the best epoch or of the last")
          .among({"best", "last"}),
      Option("average", r.average, "mean of the weights after this many best (or last) epochs")
          .between(1, 100),
  };
}

Recipe recipe_of(const OptionValues& s) {
  return {.epochs = s.integer("epochs"),
          .batch = s.integer("batch"),
          .batch_tokens = s.integer("batch_tokens"),
          .optimiser = s.text("optimiser"),
          .rate = s.number("rate"),
          .momentum = s.number("momentum"),
          .beta1 = s.number("beta1"),
          .beta2 = s.number("beta2"),
          .epsilon = s.number("epsilon"),
          .weight_decay = s.number("weight_decay"),
          .schedule = s.text("schedule"),
          .warmup = s.integer("warmup"),
          .decay = s.number("decay"),
          .decay_every = s.integer("decay_every"),
          .decay_from = s.integer("decay_from"),
          .clip = s.number("clip"),
          .patience = s.integer("patience"),
          .monitor = s.text("monitor"),
          .keep = s.text("keep"),
          .average = s.integer("average")};
}

double rate_factor(const Recipe& recipe, int64_t step, int64_t epoch, int64_t total_steps) {
  const auto t = static_cast<double>(step);
  const auto w = static_cast<double>(std::max<int64_t>(recipe.warmup, 1));
  if (recipe.schedule == "inverse_sqrt") return std::min(t / w, std::sqrt(w / t));
  const double warm = recipe.warmup > 0 ? std::min(1.0, t / w) : 1.0;
  const double span = std::max(1.0, static_cast<double>(total_steps - recipe.warmup));
  const double done = std::clamp((t - static_cast<double>(recipe.warmup)) / span, 0.0, 1.0);
  if (recipe.schedule == "cosine") return warm * 0.5 * (1 + std::cos(3.141592653589793 * done));
  if (recipe.schedule == "linear") return warm * (1 - done);
  if (recipe.schedule == "exponential")
    return warm * std::pow(recipe.decay, static_cast<double>(epoch));
  if (recipe.schedule == "step") {
    const int64_t from = recipe.decay_from ? recipe.decay_from : recipe.decay_every;
    const int64_t factors = epoch < from ? 0 : 1 + (epoch - from) / recipe.decay_every;
    return warm * std::pow(recipe.decay, static_cast<double>(factors));
  }
  return warm;
}

}  // namespace fovea::train
