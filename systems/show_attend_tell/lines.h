// Captions as numbers of words, and batches of them.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/captions/caption_set.h"
#include "data/formats/vocabulary.h"

namespace fovea::systems::show_attend_tell {

struct Line {
  int64_t item = 0;          // its picture
  std::vector<int64_t> ids;  // without begin and end
};

// Every caption of these pictures; of one longer than `longest` its beginning, and `cut` counts it.
std::vector<Line> lines_of(const data::CaptionSet& set, const std::vector<int64_t>& items,
                           const data::Vocabulary& vocabulary, int64_t longest, int64_t& cut);

struct Lines {
  std::vector<int64_t> items;
  torch::Tensor words;    // [lines, longest]: begin, y_1, …
  torch::Tensor real;     // bool, of the same shape
  torch::Tensor targets;  // [real words]: y_1, …, end, line by line
};
Lines batch_of(const std::vector<Line>& lines, std::span<const int64_t> which,
               torch::Device device);

// The words of a hypothesis, without its end.
std::vector<std::string> words_of(const std::vector<int64_t>& tokens,
                                  const data::Vocabulary& vocabulary);

// Whether the middle of a region lies in the box; a box narrower than a region counts as wide as one, so
// that a thin thing can be found.
bool points_at(const data::Box& box, int64_t region, int64_t grid);

}  // namespace fovea::systems::show_attend_tell
