// Documents composed of sentences of other data sets, with known answers.
#pragma once

#include <cstdint>
#include <string>

#include "text/corpus.h"

namespace fovea::text {

// Documents of objective sentences that hide a few polar ones: `folder` holds rt-polarity.all (MR)
// and subj.all. MR is split before mixing, so that no sentence is in two splits. `documents` for
// training, 500 for validation, 1,000 for test.
Corpus compose_hidden(const std::string& folder, uint64_t seed, int64_t documents);

}  // namespace fovea::text
