// MobileNetV2 (Sandler et al. 2018) of 8-bit numbers as a frozen backbone: a photograph becomes a grid of
// regions, or a class of ImageNet.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "data/pictures/image.h"
#include "data/pictures/quantised_network.h"

namespace fovea::systems::backbone {

class MobileNetV2 {
 public:
  // A folder with the network's two files, and imagenet_labels.txt where classes are asked for.
  explicit MobileNetV2(const std::string& folder);
  explicit MobileNetV2(data::QuantisedNetwork network);

  // Pictures uint8 [items, side, side, 3], of the network's own side. The last convolution before the mean,
  // as its 8-bit numbers: uint8 [items, regions, channels], row by row. real = (q - zero) * scale.
  torch::Tensor features(const torch::Tensor& pictures) const;
  // Scores of classes [items, classes], real numbers before the softmax.
  torch::Tensor scores(const torch::Tensor& pictures) const;

  int64_t side() const { return network_.in.height; }
  int64_t grid() const { return of_features().out.height; }
  int64_t channels() const { return of_features().out.channels; }
  double scale() const { return of_features().out.scale; }
  int64_t zero() const { return of_features().out.zero; }
  const std::vector<std::string>& classes() const { return classes_; }

 private:
  const data::QuantisedOperator& of_features() const { return network_.operators[features_]; }
  torch::Tensor run(const torch::Tensor& pictures, size_t last) const;

  data::QuantisedNetwork network_;
  size_t features_ = 0;  // the operator whose output they are
  struct Weights {
    torch::Tensor kernel, bias;  // float [outputs, inputs, height, width], [outputs]
  };
  std::vector<Weights> weights_;  // of each operator
  std::vector<std::string> classes_;
};

// A picture as the network was shown its own: squashed to side x side, each pixel a mean weighted by a
// triangle that is as wide as the reduction. uint8 [1, side, side, 3].
torch::Tensor squashed(const data::Image& picture, int64_t side);

}  // namespace fovea::systems::backbone
