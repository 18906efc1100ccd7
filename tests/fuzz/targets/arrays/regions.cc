// Arrays of regions: those of a folder, and a picture's own.
#include "data/captions/regions.h"

#include <array>
#include <cmath>

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void check(const data::Regions& read) {
  require(read.regions() >= 1 && read.regions() <= data::kMostRegions && read.width() >= 1 &&
              read.width() <= data::kWidestRegion,
          "as many regions and numbers as there may be");
  std::vector<float> numbers(static_cast<size_t>(read.regions() * read.width()));
  for (int64_t item = 0; item < read.items(); ++item) {
    read.copy(item, numbers.data());
    for (const float number : numbers) require(std::isfinite(number), "numbers are finite");
  }
}

// The last byte says which file it is. Of the form with scales these are the second part.
void fuzz_regions(std::string_view bytes) {
  constexpr std::array<const char*, 3> kNames = {"regions.npy", "regions.safetensors",
                                                 "regions.i8"};
  Bytes input(bytes);
  const size_t which = input.below(kNames.size());
  static std::array<MemoryFolder, kNames.size()> folders;  // a folder has one of them
  MemoryFolder& folder = folders[which];
  data::Regions read;
  if (which == 2) {
    folder.write("regions.scale.txt", input.part());
    folder.write(kNames[which], input.rest());
  } else {
    const std::string path = folder.write(kNames[which], input.rest());
    if (reads(path, [&] { read = data::read_region_file(path); })) check(read);
  }
  if (!reads(folder.path(), [&] { read = data::read_regions(folder.path(), {"a.png", "b.png"}); }))
    return;
  require(read.items() == 2, "regions of each picture");
  check(read);
  read.keep({1});
  check(read);
}
const Registration regions{"regions", fuzz_regions};

}  // namespace
}  // namespace fovea::fuzz
