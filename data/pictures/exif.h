// How a camera was held: the orientation that EXIF notes in a picture, and the picture turned upright.
#pragma once

#include <string_view>

#include "data/pictures/image.h"

namespace fovea::data {

// From 1 (upright) to 8 in the TIFF bytes of an EXIF block; 1 where they are damaged or do not say.
int exif_orientation(std::string_view tiff);
// The block of a PNG file's eXIf chunk; empty: it has none.
std::string_view png_exif(std::string_view png);

// The picture as it was seen, from what was stored.
Image upright(Image stored, int orientation);

}  // namespace fovea::data
