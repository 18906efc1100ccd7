// The curves of the normalisers, the table of what systems do under them, and a row of scores.
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"
#include "systems/sparse_normalisers/model.h"

namespace fovea::systems::sparse_normalisers {

// a against e₁ − e₂, and the table.
explain::Explanation curves(const Model& model, const std::vector<std::string>& systems);
// One row of scores under each normaliser; weights of exactly zero stay blank.
explain::Explanation row_picture(const torch::Tensor& scores);

}  // namespace fovea::systems::sparse_normalisers
