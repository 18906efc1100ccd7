#include "text/vectors.h"

#include <algorithm>
#include <cmath>

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

using text::VectorFormat;

void fuzz_vectors(std::string_view bytes) {
  text::Vectors read;
  if (!reads("a.vec", [&] { read = text::parse_vectors(bytes, "a.vec"); })) return;
  require(read.values.size() == read.words.size() * static_cast<size_t>(read.width),
          "every word has its vector");
  require(std::all_of(read.values.begin(), read.values.end(),
                      [](float value) { return std::isfinite(value); }),
          "numbers are finite");
  if (read.width == 1) return;  // GloVe's first line may then look like word2vec's header
  // Not the binary format: numbers whose bytes are digits would be read as text.
  for (const auto format : {VectorFormat::kGlove, VectorFormat::kWord2vecText}) {
    const text::Vectors again = text::parse_vectors(text::vector_bytes(read, format), "a.vec");
    require(again.words == read.words && again.values == read.values,
            "vectors survive being written");
  }
}
const Registration vectors{"vectors", fuzz_vectors};

}  // namespace
}  // namespace fovea::fuzz
