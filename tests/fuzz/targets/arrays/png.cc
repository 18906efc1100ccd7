#include "tests/fuzz/targets/arrays/image_checks.h"

namespace fovea::fuzz {
namespace {

void fuzz_png(std::string_view bytes) {
  if (bytes.size() >= 24 &&
      (big_endian(bytes.substr(16, 4)) > kMostSide || big_endian(bytes.substr(20, 4)) > kMostSide))
    return;
  check_image(bytes);
}
const Registration png{"png", fuzz_png};

}  // namespace
}  // namespace fovea::fuzz
