// Images and labels that must agree.
#include "data/digits.h"

#include <algorithm>

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_digits(std::string_view input) {
  Bytes bytes(input);
  const size_t split = std::min(bytes.below(input.size() + 1), bytes.rest().size());
  const std::string images = folder().write("images", bytes.rest().substr(0, split)),
                    labels = folder().write("labels", bytes.rest().substr(split));
  data::Digits read;
  if (!reads(folder().path(), [&] { read = data::read_digits(images, labels); })) return;
  require(read.count > 0 && read.height > 0 && read.width > 0, "digits have pixels");
  require(read.labels.size() == static_cast<size_t>(read.count), "every digit has a label");
  std::vector<float> pixels(static_cast<size_t>(read.height * read.width));
  data::normalised_digit(read, read.count - 1, pixels.data(), {.down = -1, .right = 2});
}
const Registration digits{"digits", fuzz_digits};

}  // namespace
}  // namespace fovea::fuzz
