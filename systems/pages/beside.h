// Two translation systems of a tour on one plot: the score against the length of the sentence.
#pragma once

#include <string>
#include <vector>

#include "explain/report.h"

namespace fovea::systems {

// If both systems are among `sections` and ran on the same generated text, each gets the BLEU curve
// of the other.
void set_beside(std::vector<explain::Section>& sections, const std::string& one,
                const std::string& other);

}  // namespace fovea::systems
