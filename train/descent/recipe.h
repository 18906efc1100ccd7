// How a model learns by gradient descent: the numbers a paper gives in its training section.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/option_values.h"

namespace fovea::train {

struct Recipe {
  int64_t epochs = 10;
  int64_t batch = 32;        // items
  int64_t batch_tokens = 0;  // > 0: batches hold as many items as fit this total length instead
  std::string optimiser = "adam";  // sgd, adam, adamw, adagrad, rmsprop, adadelta
  double rate = 1e-3;
  double momentum = 0;  // sgd, rmsprop
  double beta1 = 0.9, beta2 = 0.999,
         epsilon = 1e-8;              // adam; epsilon also of adagrad, rmsprop and adadelta
  double weight_decay = 0;            // L2 added to the gradient; decoupled in adamw
  std::string schedule = "constant";  // constant, inverse_sqrt, step, cosine, linear, exponential
  int64_t warmup = 0;                 // steps of linear warm-up
  double decay = 0.5;                 // step, exponential: the factor
  int64_t decay_every = 1;            // step: epochs between two factors
  int64_t decay_from = 0;             // step: the epoch of the first factor; 0: decay_every
  double clip = 0;                    // largest norm of the whole gradient; 0: none
  int64_t patience = 0;          // epochs without improvement before stopping; 0: never stop early
  std::string monitor = "loss";  // the validation metric that decides
  std::string keep = "best";     // best: the weights of the best validation; last
  int64_t average = 1;           // the mean of the weights after so many best, or last, epochs
};

// The recipe as options whose defaults it gives, and back.
std::vector<Option> options_of(const Recipe&);
Recipe recipe_of(const OptionValues&);

// The factor on the rate at a step (from 1), in an epoch (from 0), of `total_steps` planned.
//   inverse_sqrt: min(t/w, sqrt(w/t)), with its peak at t = w
//   (Vaswani et al. 2017 with rate = (d w)^-1/2)
double rate_factor(const Recipe&, int64_t step, int64_t epoch, int64_t total_steps);

}  // namespace fovea::train
