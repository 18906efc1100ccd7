// Pooling as attention: the sum of φ(x_i), their mean, the maximum of each coordinate, and a learned
// query.
//
// Each is one call of attend. A constant score without a normaliser gives the sum, with the uniform
// normaliser the mean. The maximum of a coordinate is the hard choice over the values of that
// coordinate, with one head for each. The sum grows with n; the mean does not depend on n.
#include "systems/pooling/pooling.h"

#include <torch/torch.h>

#include "data/packed.h"
#include "fovea/attend.h"

namespace fovea::systems::pooling {

torch::Tensor pool(const std::string& how, const torch::Tensor& values,
                   const torch::Tensor& offsets, const torch::Tensor& query) {
  const int64_t bags = offsets.size(0) - 1, width = values.size(1);
  const Ragged bag{data::one_each(bags, values.device()), offsets};
  if (how == "max") {
    // [total, width heads, 1]: a head for each coordinate, whose key and value are that coordinate.
    const torch::Tensor coordinates = values.unsqueeze(2);
    const torch::Tensor one = torch::ones({bags, width, 1}, values.options());
    return attend(one, coordinates, coordinates,
                  {.score = Dot{1.0}, .normaliser = Hard{}, .structure = bag})
        .squeeze(2);
  }
  const torch::Tensor value = values.unsqueeze(1);  // [total, 1 head, width]
  if (how == "attention")
    return attend(query.reshape({-1, 1, width}).expand({bags, 1, width}), value, value,
                  {.structure = bag})
        .squeeze(1);
  const torch::Tensor blank = torch::zeros({bags, 1, width}, values.options());
  Normaliser normaliser = Unnormalised{};
  if (how == "mean") normaliser = Uniform{};
  return attend(blank, value, value,
                {.score = Constant{}, .normaliser = normaliser, .structure = bag})
      .squeeze(1);
}

torch::Tensor pool_weights(const std::string& how, const torch::Tensor& values,
                           const torch::Tensor& query) {
  const int64_t items = values.size(0), width = values.size(1);
  const torch::Tensor offsets = torch::tensor({int64_t{0}, items}, torch::kInt32);
  // What each item adds to the output is its weight: pooling an identity matrix shows it, for every
  // kind of pooling.
  if (how == "max") {
    if (items == 0) return torch::zeros({0});
    return torch::one_hot(values.argmax(0), items).to(torch::kFloat32).sum(0) /
           static_cast<double>(width);
  }
  const Ragged bag{data::one_each(1), offsets};
  const torch::Tensor value = values.unsqueeze(1);
  if (how == "attention")
    return weights(query.reshape({1, 1, width}), value, {.structure = bag}).weights.flatten();
  Normaliser normaliser = Unnormalised{};
  if (how == "mean") normaliser = Uniform{};
  return weights(torch::zeros({1, 1, width}), value,
                 {.score = Constant{}, .normaliser = normaliser, .structure = bag})
      .weights.flatten();
}

}  // namespace fovea::systems::pooling
