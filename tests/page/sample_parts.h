// What the samples are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "explain/explanation.h"

namespace fovea::explain::samples {

std::vector<Item> words(const std::string& text);
std::vector<float> softmax_rows(std::vector<float> scores, size_t columns);
// Scores that favour the given key of each query, with noise.
std::vector<float> peaked(const std::vector<int>& favourite, size_t columns, float height,
                          uint32_t seed);
Explanation labelled(const char* system, const char* title, View view);
// A digit as seven bars, 28 x 28.
Picture digit(int value, uint32_t seed);

}  // namespace fovea::explain::samples
