// The task is the sentence of the lecture: "the animal did not cross the street because it was too
// tired". Whom does "it" mean? It always means the living thing, or, where the context decides,
// the place if it "was too wide". The model must name it, and for that it must look there. Some
// sentences have no living thing. Then "nobody" is the answer, and no animal can be guessed by
// elimination.
#pragma once

#include <memory>

#include "train/task.h"

namespace fovea::systems::scaled_dot_product {

std::unique_ptr<Task> make_scaled_dot_product(const RunOptions& run_options);

}  // namespace fovea::systems::scaled_dot_product
