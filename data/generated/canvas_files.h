// Canvases as pictures of a collection, and the files in which read_captions finds them again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/captions/caption_set.h"
#include "data/generated/canvases.h"
#include "data/pictures/idx.h"

namespace fovea::data {

struct DrawnPictures {
  CaptionSet set;                            // without captions; the box of each digit has its name
  std::vector<std::vector<uint8_t>> pixels;  // of each item, [side, side, 3]
};
DrawnPictures pictures_of(const Canvases& canvases);

// pictures.idx and captions.jsonl, by name. Pixels are [items, side, side, 3].
std::map<std::string, std::string> picture_files(std::vector<Captioned> items, const Idx& pixels);

}  // namespace fovea::data
