// IDX files, as MNIST comes: unsigned bytes of any number of dimensions, big-endian header, gzip or
// not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::data {

inline constexpr int64_t kWidestPicture = 4096;  // pixels
inline constexpr int64_t kMostChannels = 4096;

struct Idx {
  std::vector<int64_t> shape;   // for example 60000, 28, 28
  std::vector<uint8_t> values;  // as many as the shape says
};

Idx read_idx(const std::string& path);
std::string idx_bytes(const Idx&);

// Images and their labels; refuses counts that differ or are 0, images that are not of rank 3 or
// have no pixels, and labels above 9.
struct Digits {
  int64_t count = 0, height = 0, width = 0;
  std::vector<uint8_t> pixels = {};
  std::vector<int64_t> labels = {};
  int64_t channels = 1;
};
Digits read_digits(const std::string& images_path, const std::string& labels_path);
// The same for images of rank 4: images, channels, height, width.
Digits read_channels(const std::string& images_path, const std::string& labels_path);

}  // namespace fovea::data
