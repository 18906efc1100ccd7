// PNG and JPEG files as grey pixels; whatever is wrong with a file is one line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

struct GreyImage {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;  // row by row
};

// By the first bytes, not by the name. Damaged, cut short, another format, or above 64 million
// pixels: FileError.
GreyImage read_image(const std::string& path);

// Scaled to side x side, each pixel the mean of what it covers.
GreyImage scaled(const GreyImage&, int64_t side);

// A line that names a folder of pictures; a blank one is refused with its number.
std::string folder_named(const std::string& input, size_t number, std::string_view line);

// The PNG and JPEG files of a folder (by their endings), sorted by name.
std::vector<std::string> image_files(const std::string& folder);

// A folder for each label (0, 1), in it a folder for each bag, in it the bag's images.
struct ImageBags {
  std::vector<std::string> names;  // label/bag
  std::vector<int64_t> labels;
  std::vector<std::vector<GreyImage>> images;  // of side x side
};
ImageBags read_image_bags(const std::string& folder, int64_t side);
// One bag: a folder of images.
std::vector<GreyImage> read_image_bag(const std::string& folder, int64_t side);

}  // namespace fovea::data
