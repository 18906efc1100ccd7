// Music in four voices on a grid of sixteenths: `split<TAB>name<TAB>soprano<TAB>alto<TAB>tenor<TAB>bass`,
// a voice one token for each sixteenth: a MIDI pitch where a note begins, `-` where it goes on, `0`
// for a rest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/split.h"

namespace fovea::data {

inline constexpr int64_t kVoices = 4;
// Tokens of a model: the beginning, a note that goes on, a rest, then the pitches 1 to 127.
inline constexpr int64_t kStartToken = 0, kHoldToken = 1, kRestToken = 2, kMusicTokens = 130;
inline constexpr int64_t token_of_pitch(int64_t pitch) { return pitch + 2; }
// 0 where the token is none.
inline constexpr int64_t pitch_of_token(int64_t token) {
  return token > kRestToken ? token - 2 : 0;
}

struct Chorale {
  std::string name = {};
  // Soprano, alto, tenor and bass of the first sixteenth, then of the second, …
  std::vector<int64_t> tokens = {};
  int64_t sixteenths() const { return static_cast<int64_t>(tokens.size()) / kVoices; }
};

struct Chorales {
  std::vector<Chorale> pieces = {};
  std::vector<Split> parts = {};  // of each, as the file says
};

// FileError names the line and the voice that is wrong: another number of columns, voices of
// different lengths, an unknown token, a note that goes on before one began.
Chorales read_chorales(const std::string& path);
// Four voices, or a whole line of such a file.
Chorale parse_chorale(std::string_view line, const std::string& path, size_t number);
// soprano<TAB>alto<TAB>tenor<TAB>bass
std::string chorale_text(const Chorale& chorale);

}  // namespace fovea::data
