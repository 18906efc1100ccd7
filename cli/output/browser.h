// PNG files: drawn from SVG by the Chromium of this machine, because drawing text needs fonts.
#pragma once

#include <string>

namespace fovea::cli {

// Writes `svg` as a PNG file of twice its size. Chromium is the program that FOVEA_CHROMIUM names,
// or one in PATH. InvalidArgument if there is none, or if it draws nothing.
void write_png(const std::string& svg, const std::string& path);

}  // namespace fovea::cli
