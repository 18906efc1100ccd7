#include "data/formats/npy.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_npy(std::string_view bytes) {
  data::Array read;
  if (!reads("a.npy", [&] { read = data::parse_npy(bytes, "a.npy"); })) return;
  require(read.bytes.size() == data::byte_count(read.type, read.shape),
          "an array has as many bytes as its shape says");
  const data::Array again = data::parse_npy(data::npy_bytes(read), "a.npy");
  require(again.type == read.type && again.shape == read.shape && again.bytes == read.bytes,
          "npy survives being written");
}
const Registration npy{"npy", fuzz_npy};

}  // namespace
}  // namespace fovea::fuzz
