// SentencePiece models: loading, and what a loaded one does to text.
#include "tests/fuzz/target.h"
#include "text/tokens.h"
#include "translate/codec.h"

namespace fovea::fuzz {
namespace {

constexpr const char* kText = "the cat sat on the mat \xE2\x96\x81 caf\xC3\xA9 2024";

void fuzz_pieces(std::string_view bytes) {
  std::unique_ptr<translate::Codec> codec;
  if (reads("a.model", [&] { codec = translate::codec_from_bytes(bytes, "a.model"); })) {
    const translate::Encoded encoded = codec->encode(kText);
    require(encoded.words.size() == encoded.ids.size(), "every token is of a word");
    for (const int64_t id : encoded.ids) {
      require(id >= 0 && id < codec->size(), "ids are of the vocabulary");
      codec->piece(id);
    }
    codec->decode(encoded.ids);
    const std::string kept = codec->bytes();
    require(translate::codec_from_bytes(kept, "a.model")->bytes() == kept,
            "a model survives being written");
  }
  reads("a.model", [&] { text::piece_tokeniser(bytes, "a.model")->split(kText); });
}
const Registration pieces{"pieces", fuzz_pieces};

}  // namespace
}  // namespace fovea::fuzz
