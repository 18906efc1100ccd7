// Files of word vectors: GloVe text, word2vec text, word2vec binary; gzip allowed for reading.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/named.h"

namespace fovea::text {

inline constexpr int64_t kMostWidth = 1 << 16;  // of a word's vector

struct Vectors {
  int64_t width = 0;
  std::vector<std::string> words = {};
  std::vector<float> values = {};  // [words, width]
  int64_t not_utf8 = 0;            // words that were left out for it
  const float* of(size_t word) const { return values.data() + word * static_cast<size_t>(width); }
};

// The format is told from the content: a first line "count width" is word2vec's, binary where the
// first row is no text. Refuses rows of another width, a count that is not met, a word that comes
// twice and numbers that are not finite.
Vectors read_vectors(const std::string& path);
Vectors parse_vectors(std::string_view bytes, const std::string& path);

enum class VectorFormat { kGlove, kWord2vecText, kWord2vecBinary };
inline constexpr Named<VectorFormat, 3> kVectorFormats{{{"glove", VectorFormat::kGlove},
                                                        {"word2vec", VectorFormat::kWord2vecText},
                                                        {"binary", VectorFormat::kWord2vecBinary}}};
// What read_vectors gives back bit for bit: text has as many digits as a float needs.
std::string vector_bytes(const Vectors& vectors, VectorFormat format);

}  // namespace fovea::text
