// The task is the lecture's own sentence: "the animal did not cross the street because it was too
// tired". Whom does "it" mean? Here it always means the living thing; the model must name it, and
// can only do so by looking there. Some sentences have no living thing, so that "nobody" is the
// answer by default and no animal can be guessed by elimination.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::scaled_dot_product {

std::unique_ptr<Task> make_scaled_dot_product(const RunOptions& run_options);

}  // namespace fovea::systems::scaled_dot_product
