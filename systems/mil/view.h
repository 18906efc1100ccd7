// Where a bag's label comes from: strips of instances with their weights, and a mosaic.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/packed.h"
#include "explain/explanation.h"
#include "train/task.h"
#include "systems/mil/model.h"

namespace fovea::systems::mil {

struct ShownBag {
  std::string name;
  std::optional<int64_t> label = {};
  std::vector<float> features = {};
  std::vector<uint8_t> key_instances = {};  // empty: not known
  std::vector<std::string> files = {};      // of the instances, where they are pictures of a folder
  std::vector<std::string> telling = {};    // of the instances of a table: its most unusual number

  // "instance 3", or its file's name.
  std::string instance_name(size_t) const;
};

std::vector<explain::Explanation> pictures(Model& model, const std::vector<ShownBag>& bags,
                                           int64_t width, int64_t side, const std::string& pool,
                                           torch::Device device);

}  // namespace fovea::systems::mil
