// The weights between the words of a sentence, and the six steps of each word as a table.
#pragma once

#include "explain/explanation.h"
#include "systems/scaled_dot_product/model.h"
#include "systems/scaled_dot_product/sentences.h"

namespace fovea::systems::scaled_dot_product {

// x [words, width]: the vectors of the sentence's words; `asking`: what their queries are made of.
explain::Explanation picture(Model& model, const Sentence& sentence, const torch::Tensor& asking,
                             const torch::Tensor& x);
// The lecture's two words, with its numbers: 112 and 96, 14 and 12, 0.88 and 0.12.
explain::Explanation thinking_machines();

}  // namespace fovea::systems::scaled_dot_product
