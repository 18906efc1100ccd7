// The task is the sentence of the lecture: "the animal did not cross the street because it was too
// tired", or "too wide". What does "it" mean? The last word decides: somebody was tired, a place was
// wide. The model must name it, and for that it must look there. Where somebody was tired and only
// places are named, "nobody" is the answer, so that no animal can be guessed by elimination.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::scaled_dot_product {

std::unique_ptr<Task> make_scaled_dot_product(const RunOptions& run_options);

}  // namespace fovea::systems::scaled_dot_product
