#include "tests/fuzz/targets/arrays/image_checks.h"

namespace fovea::fuzz {
namespace {

void fuzz_jpeg(std::string_view bytes) {
  // FF C0 to FF CF begin a frame: length, precision, height, width.
  for (size_t at = 0; at + 9 <= bytes.size(); ++at)
    if (bytes[at] == '\xFF' && (bytes[at + 1] & 0xF0) == 0xC0 &&
        (big_endian(bytes.substr(at + 5, 2)) > kMostSide ||
         big_endian(bytes.substr(at + 7, 2)) > kMostSide))
      return;
  check_image(bytes);
}
const Registration jpeg{"jpeg", fuzz_jpeg};

}  // namespace
}  // namespace fovea::fuzz
