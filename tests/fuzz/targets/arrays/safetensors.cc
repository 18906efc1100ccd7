#include "data/formats/safetensors.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_safetensors(std::string_view bytes) {
  data::Safetensors read;
  if (!reads("a.safetensors", [&] { read = data::parse_safetensors(bytes, "a.safetensors"); }))
    return;
  const data::Safetensors again =
      data::parse_safetensors(data::safetensors_bytes(read), "a.safetensors");
  require(again.metadata == read.metadata, "metadata survives being written");
  require(again.arrays.size() == read.arrays.size(), "every array survives being written");
  for (const auto& [name, array] : read.arrays) {
    const data::Array& other = again.arrays.at(name);
    require(array.bytes.size() == data::byte_count(array.type, array.shape),
            "an array has as many bytes as its shape says");
    require(other.type == array.type && other.shape == array.shape && other.bytes == array.bytes,
            "an array survives being written");
  }
}
const Registration safetensors{"safetensors", fuzz_safetensors};

}  // namespace
}  // namespace fovea::fuzz
