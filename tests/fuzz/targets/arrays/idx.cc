#include "data/pictures/idx.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_idx(std::string_view bytes) {
  const std::string path = folder().write("images", bytes);
  data::Idx read;
  if (!reads(path, [&] { read = data::read_idx(path); })) return;
  folder().write("images", data::idx_bytes(read));
  const data::Idx again = data::read_idx(path);
  require(again.shape == read.shape && again.values == read.values, "IDX survives being written");
}
const Registration idx{"idx", fuzz_idx};

}  // namespace
}  // namespace fovea::fuzz
