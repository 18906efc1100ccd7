#include "systems/sparse_normalisers/model.h"

#include <torch/torch.h>

#include "systems/normaliser_option.h"

namespace fovea::systems::sparse_normalisers {

Model::Model(int64_t systems) {
  const auto unknown = [&] {
    return torch::full({systems, static_cast<int64_t>(kCompared.size())}, -1.0, torch::kFloat64);
  };
  figures = register_buffer("figures", unknown());
  zeros = register_buffer("zeros", unknown());
  hits = register_buffer("hits", unknown());
}

torch::Tensor weights_of(const torch::Tensor& scores, const Compared& normaliser) {
  const int64_t n = scores.size(-1);
  return weights(scores.reshape({1, 1, -1, n}), scores.new_zeros({1, 1, n, 1}),
                 {.score = Location{}, .normaliser = normaliser_named(normaliser.name)})
      .weights.view_as(scores);
}

}  // namespace fovea::systems::sparse_normalisers
