// The nearest of some names to a misspelt one, for "did you mean".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

// The name with the smallest edit distance (insert, delete, replace, swap neighbours), or "" where none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

// " (did you mean 'x'?)" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

}  // namespace fovea::data
