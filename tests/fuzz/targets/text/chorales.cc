// Pieces on a grid of sixteenths, and the MIDI files made of them.
#include "data/music/chorales.h"

#include "data/music/midi.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_chorales(std::string_view bytes) {
  const std::string path = folder().write("a.tsv", bytes);
  data::Chorales read;
  if (!reads(path, [&] { read = data::read_chorales(path); })) return;
  require(read.parts.size() == read.pieces.size(), "a part for each piece");
  for (const data::Chorale& piece : read.pieces) {
    require(piece.tokens.size() % data::kVoices == 0 && piece.sixteenths() > 0, "four voices");
    for (const int64_t token : piece.tokens)
      require(token > data::kStartToken && token < data::kMusicTokens, "a known token");
    require(data::parse_chorale(data::chorale_text(piece), "again", 1).tokens == piece.tokens,
            "a piece survives being written");
    require(data::midi_of(piece).starts_with("MThd"), "every piece is a MIDI file");
  }
}
const Registration chorales{"chorales", fuzz_chorales};

}  // namespace
}  // namespace fovea::fuzz
