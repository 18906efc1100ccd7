// How a camera was held, from any bytes.
#include "data/pictures/exif.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_exif(std::string_view bytes) {
  const int orientation = data::exif_orientation(bytes);
  require(orientation >= 1 && orientation <= 8, "an orientation is one of eight");
  data::png_exif(bytes);
  const data::Image stored{3, 2, 1, {0, 1, 2, 3, 4, 5}};
  require(data::upright(stored, orientation).pixels.size() == 6, "turning keeps every pixel");
}
const Registration exif{"exif", fuzz_exif};

}  // namespace
}  // namespace fovea::fuzz
