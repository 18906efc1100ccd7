// The nearest of some names to what was typed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::cli {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (Damerau-Levenshtein, each place
// edited once).
size_t edit_distance(std::string_view a, std::string_view b);

// The name nearest to `typed`, or nothing where none is near: more than a third of its letters, and more than one, differ.
std::string nearest(std::string_view typed, const std::vector<std::string>& names);

// "unknown system 'ransformer': did you mean 'transformer'?", or where none is near, the names there are.
std::string unknown(std::string_view kind, std::string_view typed, const std::vector<std::string>& names);

}  // namespace fovea::cli
