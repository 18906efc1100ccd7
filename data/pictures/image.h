// PNG and JPEG files as grey or coloured pixels. Every error about a file is one line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

struct Image {
  int64_t width = 0, height = 0, channels = 1;  // 1: grey; 3: red, green, blue
  std::vector<uint8_t> pixels;                  // row by row
};

// The first bytes decide the format, not the name. The picture is turned upright as its EXIF block
// says. Sixteen bits become eight, four inks three colours, and white stands behind what is
// transparent. FileError if the file is damaged, cut short, of another format, or larger than 64
// million pixels.
Image read_image(const std::string& path);         // grey
Image read_colour_image(const std::string& path);  // three channels

// The picture as a PNG file.
std::string png_bytes(const Image&);

// Scaled to side x side, or to width x height, each pixel the mean of what it covers.
Image scaled(const Image&, int64_t side);
Image scaled(const Image&, int64_t width, int64_t height);

// In its own shape, with `longest` pixels on the longer side; a smaller picture as it is.
Image shrunk(Image, int64_t longest);

// A line that names a folder of pictures; a blank one is refused with its number.
std::string folder_named(const std::string& input, size_t number, std::string_view line);

// The pictures of a folder (by their endings), sorted by name. Among them are those of formats that
// cannot be read (GIF, WebP, HEIC, …): an error names them, or they would be left out in silence.
std::vector<std::string> image_files(const std::string& folder);
// Those of its folders too, but of no folder that a link leads to.
std::vector<std::string> image_files_within(const std::string& folder);

// A folder for each label (0, 1), in it a folder for each bag, in it the bag's images.
struct ImageBags {
  std::vector<std::string> names;  // label/bag
  std::vector<int64_t> labels;
  std::vector<std::vector<Image>> images;  // of side x side
};
ImageBags read_image_bags(const std::string& folder, int64_t side);
// One bag: a folder of images.
std::vector<Image> read_image_bag(const std::string& folder, int64_t side);

}  // namespace fovea::data
