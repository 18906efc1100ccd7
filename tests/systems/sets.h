// Runs of systems that read sets, and folders of pictures for them.
#pragma once

#include <gtest/gtest.h>
#include <png.h>

#include <filesystem>
#include <string>
#include <vector>

#include "data/digits.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::test {

class Sets : public Runs {
 protected:
  // A folder of drawn digits, one picture each.
  std::string pictures(const std::vector<int64_t>& kinds) const {
    const data::Digits digits = data::generate_digits(400, 5);
    std::filesystem::create_directories(base_ / "set");
    for (size_t i = 0; i < kinds.size(); ++i) {
      png_image image{};
      image.version = PNG_IMAGE_VERSION;
      image.width = image.height = 28;
      image.format = PNG_FORMAT_GRAY;
      EXPECT_TRUE(png_image_write_to_file(
          &image, (base_ / "set" / (std::to_string(i) + ".png")).c_str(), 0,
          digits.pixels.data() + (10 * static_cast<int64_t>(i) + kinds[i]) * 784, 0, nullptr));
    }
    return (base_ / "set").string();
  }
};

}  // namespace fovea::systems::test
