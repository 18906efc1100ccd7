// What every picture that was read must be.
#pragma once

#include "data/pictures/image.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {

// What a header may announce here: the reader takes far more, but such a picture costs so much time
// that little else would be tried.
inline constexpr unsigned kMostSide = 512;

inline unsigned big_endian(std::string_view bytes) {
  unsigned value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

inline void check_image(std::string_view bytes) {
  const std::string path = folder().write("picture", bytes);
  for (const auto read : {data::read_image, data::read_colour_image}) {
    data::Image image;
    if (!reads(path, [&] { image = read(path); })) continue;
    require(image.channels == (read == data::read_image ? 1 : 3), "grey, or three colours");
    require(image.pixels.size() == static_cast<size_t>(image.width * image.height * image.channels),
            "a picture has all of its pixels");
    for (const int64_t side : {1, 28})
      require(data::scaled(image, side).pixels.size() ==
                  static_cast<size_t>(side * side * image.channels),
              "a square has all of its pixels");
  }
}

}  // namespace fovea::fuzz
