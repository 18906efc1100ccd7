// Pictures and their sets of labels: canvases of digits, or files of the user's own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/captions/caption_set.h"
#include "train/option_values.h"
#include "train/types.h"

namespace fovea::systems::image_to_set {

struct PictureSets {
  // An item's captions are not kept: `labels` has what they say.
  data::CaptionSet pictures;
  std::vector<std::vector<std::string>> labels;  // of each item, each once, as they are told
  std::vector<std::vector<uint8_t>> pixels;      // of each item, [side, side, 3]; none: regions
};

// No path: canvases of drawn digits; MNIST's folder: of its digits. Otherwise what
// data::read_captions takes: a caption with a '|' in it is a list of labels ('|' alone: no label), and
// other captions count by their words, function words left out. A picture that cannot be read leaves
// the splits, and a note says so.
PictureSets read_picture_sets(const Source& source, const OptionValues& options);

// A list's labels, or a caption's content words.
std::vector<std::string> labels_of(const std::vector<std::string>& captions);

// Generated pictures as files that are read again, with the place of each digit.
Written write_picture_sets(const PictureSets& sets, int64_t side);

}  // namespace fovea::systems::image_to_set
