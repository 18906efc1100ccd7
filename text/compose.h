// Documents made of the sentences of others, with known answers.
#pragma once

#include <cstdint>
#include <string>

#include "text/corpus.h"

namespace fovea::text {

// Documents of some objective sentences that hide a few polar ones (systems.md §6): `folder` holds
// rt-polarity.all and subj.all. MR is split before mixing, so that no sentence is shared.
// `documents` to learn from; 500 to choose by, 1,000 to judge by.
Corpus compose_hidden(const std::string& folder, uint64_t seed, int64_t documents);

}  // namespace fovea::text
