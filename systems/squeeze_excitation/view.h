// Gates by class and depth, and channels before and after them.
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"
#include "systems/picture_task.h"
#include "systems/squeeze_excitation/model.h"

namespace fovea::systems::squeeze_excitation {

// The mean gates of each group of pictures, a map for each layer. If a picture has several
// channels, these have their own Explanation.
std::vector<explain::Explanation> gates_by_group(Model& model,
                                                 const std::vector<PictureGroup>& groups);

// The channels at one place, before and after the gates; if there are many, those with the largest
// gates. `useful`: the channel that counts, -1 if not known.
explain::Explanation before_and_after(const Gated& place, const std::string& name,
                                      const std::string& outcome, int64_t useful);

// The pictures of a network without gates.
explain::Explanation without_gates(const std::string& outcome);

}  // namespace fovea::systems::squeeze_excitation
