// Options of systems that read parallel text: which files are read, and what becomes of their words.
#pragma once

#include <vector>

#include "train/option_values.h"

namespace fovea::translate {

// `tokens`: the option of the units, which systems choose from differently.
std::vector<Option> corpus_options(Option tokens);

}  // namespace fovea::translate
