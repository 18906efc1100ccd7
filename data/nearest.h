// The nearest of some names to a misspelt one, for "did you mean".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`
// (Damerau-Levenshtein, each place edited once).
size_t edit_distance(std::string_view a, std::string_view b);

// The name nearest to `typed`, or "" if none is near. A name is near if at most a third of its
// letters, or one letter, differ, or if it begins with what was typed.
std::string nearest(std::string_view typed, const std::vector<std::string>& names);

// " (did you mean 'x'?)" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

}  // namespace fovea::data
