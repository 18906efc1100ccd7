// Story lines × hops: which line each hop of a memory network read.
#pragma once

#include <string>
#include <vector>

#include "explain/explanation.h"
#include "fovea/nn/memory.h"

namespace fovea::systems::memory_network {

struct Shown {
  std::string question, answer, expected;  // expected: empty if not known
  double probability = 0;
  std::vector<std::string> lines;  // those in the memory
  int64_t forgotten = 0;           // older lines, which are not
  std::vector<int64_t> support;    // of the lines in the memory
};

// How many supporting lines were read, each the heaviest of some hop; 0 unless all were and the
// answer is right.
int64_t facts_read(const explain::Explanation& picture);

explain::Explanation picture(const Shown& shown, const nn::Recall& recall);

}  // namespace fovea::systems::memory_network
