// Set outlier and set expansion, Zaheer et al. 2017.
//
//   outlier    equivariant layers over the members, a score each, softmax over the members
//   expansion  s(x|X) = f({x} ∪ X),  f(Y) = ρ(sum_y φ(y))
//   margin     ℓ(x, x'|X) = max(0, s(x'|X) − s(x|X) + Δ(x, x'))
#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "data/packed.h"
#include "systems/deep_sets/model.h"

namespace fovea::systems::set_outlier {

class OutlierModel : public torch::nn::Module {
 public:
  struct Shape {
    int64_t side = 28, filters = 16, width = 32;
    std::string pool = "mean";
  };
  explicit OutlierModel(const Shape& shape);
  torch::Tensor forward(const data::Packed& sets);  // [total]: a score for each member
  // Softmax over the members of each set: [total].
  static torch::Tensor weights_of(const torch::Tensor& scores, const torch::Tensor& offsets);

 private:
  std::shared_ptr<deep_sets::DigitFeatures> phi_;
  std::vector<std::shared_ptr<deep_sets::Equivariant>> layers_;
  torch::nn::Linear out_{nullptr};
};

// ρ(u) = |u|²/2 + v·u: then s(x|X) − f(X) = u·φ(x) + |φ(x)|²/2 + v·φ(x), and all candidates are
// ranked by one product.
class ExpansionModel : public torch::nn::Module {
 public:
  ExpansionModel(int64_t things, int64_t width);
  torch::Tensor value(const torch::Tensor& things,
                      const torch::Tensor& offsets);  // f of each set: [sets]
  torch::Tensor gains(const torch::Tensor& things,
                      const torch::Tensor& offsets);  // s(x|X) − f(X) for every x: [sets, things]

 private:
  torch::Tensor summed(const torch::Tensor& things, const torch::Tensor& offsets);
  torch::Tensor phi_, linear_;
};

// The mean over rows of the hinges of the `hard` largest candidates of each row that are not
// excluded. scores [sets, things]; target int64 [sets]; excluded bool [sets, things]. Flat where
// satisfied, also at equality; Δ(x, x) = 0: the target is no rival.
torch::Tensor margin_loss(const torch::Tensor& scores, const torch::Tensor& target,
                          const torch::Tensor& excluded, int64_t hard, const torch::Tensor& margin);
// Δ(x, x') = 1 − |sets with both| / |sets with either|, [things, things]: 0 for x itself, 1 for two
// things that never stand in one set.
torch::Tensor company_margin(const std::vector<std::vector<int64_t>>& sets, int64_t things);

}  // namespace fovea::systems::set_outlier
