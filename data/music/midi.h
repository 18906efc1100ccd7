// Standard MIDI files, written: format 1, a track for the tempo and one for each voice.
#pragma once

#include <string>

#include "data/music/chorales.h"

namespace fovea::data {

// The bytes of a file; `quarters` a minute, 4 to 1000.
std::string midi_of(const Chorale& chorale, int64_t quarters = 80);

}  // namespace fovea::data
