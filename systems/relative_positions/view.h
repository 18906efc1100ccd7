// Pictures of relative positions: weights by distance, what the tables add, notes on a piano roll.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "data/music/chorales.h"
#include "explain/explanation.h"
#include "systems/relative_positions/model.h"

namespace fovea::systems::relative_positions {

inline constexpr size_t kShownTokens = 40;

struct Shown {
  std::string title;
  std::vector<std::string> tokens = {};
  std::vector<int64_t> deciding = {};  // of each position, -1: unknown; may be longer
};

// Where each token looks, the same by distance, and what the tables add at each distance.
std::vector<explain::Explanation> pictures(SequenceModel& model, const torch::Tensor& tokens,
                                           const Shown& shown);

// A piece as a piano roll, and for notes from the sixteenth `from` on what the model looked at when
// it chose them.
explain::Explanation piano_roll(SequenceModel& model, const data::Chorale& piece, int64_t from);

}  // namespace fovea::systems::relative_positions
