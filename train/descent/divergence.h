// Recognises a training that has diverged, and ends it with a message that says what to change. What
// was saved before stays as it is.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "fovea/error.h"
#include "train/descent/recipe.h"
#include "train/types.h"

namespace fovea::train {

// A step and its epoch, both from 1.
struct Moment {
  int64_t step = 0, epoch = 0;
};

class Divergence {
 public:
  explicit Divergence(const Recipe& recipe) : recipe_(recipe) {}

  // Of the first step. A resumed training has it from its state.
  double first_loss() const { return first_loss_; }
  void set_first_loss(double loss) { first_loss_ = loss; }

  // Of one step. Reading the loss makes the step wait for the device. On the CPU it costs nothing,
  // elsewhere it is done for some steps only.
  void check_loss(const torch::Tensor& loss, const Moment& now);
  // A mean that is finite but a million times the first loss has diverged as well: gates and bounded
  // activations keep numbers finite that mean nothing.
  void check_mean_loss(double loss, const Moment& now) const;
  // The last step of an epoch can ruin the weights, and no loss follows that would show it. A weight
  // whose square overflows float32 is of no use in products or norms.
  void check_weights(const torch::nn::Module& model, const Moment& now) const;
  void check_validation(const Metrics& metrics, const Moment& now) const;

  // Attention refuses scores that are not finite before there is a loss to look at. At the first
  // step they come from the data and not from the training.
  template <class Call>
  std::invoke_result_t<const Call&> guard(const Call& call, const Moment& now) const {
    try {
      return call();
    } catch (const InvalidArgument& error) {
      if (now.step > 1 && std::string_view(error.what()).find("finite") != std::string_view::npos)
        stop(error.what(), now);
      throw;
    }
  }

 private:
  [[noreturn]] void stop(const std::string& what, const Moment& now) const;

  const Recipe recipe_;
  double first_loss_ = 0;
};

}  // namespace fovea::train
