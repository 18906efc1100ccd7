// The pictures of a collection as the model takes them: pixels for a small network that is trained along,
// features of a frozen backbone, or arrays that another tool made.
#pragma once

#include <torch/types.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/captions/caption_set.h"
#include "data/pictures/idx.h"
#include "systems/backbone/mobilenet_v2.h"
#include "systems/show_attend_tell/encoder.h"
#include "train/option_values.h"

namespace fovea::systems::show_attend_tell {

class Gallery {
 public:
  // Options: side, grid, channels, backbone, pca.
  explicit Gallery(const OptionValues& options);

  // Reads or takes what the items' pictures are. A picture that cannot be read leaves the splits, and a
  // note says so; more than half of them: FileError.
  void fill(data::CaptionSet& set);
  // Pixels of generated pictures, [side, side, 3] each.
  void fill(std::vector<std::vector<uint8_t>> pixels, int64_t side);

  // [items, 3, side, side], or [items, regions, width].
  torch::Tensor of(std::span<const int64_t> items) const;
  // The same of one picture's file, or of an array's (.npy, .safetensors) where the model takes arrays.
  torch::Tensor read(const std::string& path) const;
  // What is drawn; of no pixels where an array has none.
  data::Image drawn(const data::CaptionSet& set, int64_t item) const;
  data::Image drawn(const std::string& path) const;

  // All pixels, pictures x side x side x 3.
  data::Idx pixels() const;

  const RegionShape& shape() const { return shape_; }
  // From a run that is applied: what its model takes.
  void restore(const RegionShape& shape) { shape_ = shape; }
  // Arrays: mean of each number, and one deviation, of these items.
  std::pair<torch::Tensor, double> moments(std::span<const int64_t> items) const;

 private:
  torch::Tensor pixels_of(const data::Image& image) const;
  torch::Tensor features_of(const data::Image& image) const;  // the backbone's, [regions, channels]
  torch::Tensor real(const torch::Tensor& numbers) const;     // these as real numbers, projected

  RegionShape shape_;
  std::shared_ptr<const backbone::MobileNetV2> backbone_;
  torch::Tensor mean_, basis_;                // of the backbone's features; undefined: as they are
  std::vector<std::vector<uint8_t>> pixels_;  // of each item, [side, side, 3]
  std::vector<std::vector<uint8_t>> features_;  // of each item, as the backbone has them
  data::Regions arrays_;
};

}  // namespace fovea::systems::show_attend_tell
