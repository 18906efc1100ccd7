// Bags of points in the plane, and questions that one kind of pooling can answer: are there many
// (sum), is their mean to the right (mean), is one of them far out (max)?
#pragma once

#include <cstdint>
#include <string>

#include "data/formats/bags.h"

namespace fovea::systems::pooling {

inline constexpr float kNear = 2;  // question "far": what is beyond is far out

// `question`: many, right or far.
// The answer to it in words: "more than seven points".
std::string answer_in_words(const std::string& question, int64_t label);

data::Bags generate(const std::string& question, int64_t count, uint64_t seed);

}  // namespace fovea::systems::pooling
