// PNG files: drawn from SVG by a Chromium that is on the machine, because that needs fonts.
#pragma once

#include <string>

namespace fovea::cli {

// Writes `svg` as a PNG file of twice its size. InvalidArgument where there is no Chromium (which
// FOVEA_CHROMIUM names, or the search path holds), or where it draws nothing.
void write_png(const std::string& svg, const std::string& path);

}  // namespace fovea::cli
