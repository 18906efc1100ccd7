// What a picture is to the predictors: so many regions of so many numbers.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <memory>
#include <vector>

#include "systems/image_to_set/model.h"

namespace fovea::systems::image_to_set {

struct Sight {
  int64_t grid = 7;      // pictures: regions are grid x grid
  int64_t filters = 16;  // pictures: of the first convolution
  int64_t inputs = 0;    // arrays of regions: numbers of a region; 0: pictures
  int64_t width = 64;    // of what comes out
};

// A small convolutional network learned along, for pictures [items, 3, side, side]; or one layer over
// arrays of regions [items, regions, inputs] that another network made.
class Encoder : public torch::nn::Module {
 public:
  explicit Encoder(const Sight& sight);
  Memory forward(const torch::Tensor& seen);

 private:
  const Sight sight_;
  std::vector<torch::nn::Conv2d> convolutions_;
  std::vector<torch::nn::BatchNorm2d> norms_;
  torch::nn::Linear project_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};

// What is looked at, and who names it.
struct Network : torch::nn::Module {
  Network(const Sight& sight, const Shape& shape)
      : encoder(register_module("encoder", std::make_shared<Encoder>(sight))),
        predictor(register_module("predictor", std::make_shared<SetPredictor>(shape))) {}

  const std::shared_ptr<Encoder> encoder;
  const std::shared_ptr<SetPredictor> predictor;
};

// Pixels [side, side, 3] of each picture as numbers from -1 to 1: [items, 3, side, side].
torch::Tensor pixels_of(const std::vector<const std::vector<uint8_t>*>& pictures, int64_t side);

}  // namespace fovea::systems::image_to_set
