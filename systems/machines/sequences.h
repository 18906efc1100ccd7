// Sequences of bits that are repeated once (copy) or several times (repeat-copy): generated, read,
// and as tensors.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/random.h"

namespace fovea::systems::machines {

enum class Job { kCopy, kRepeatCopy };

struct Sequence {
  std::vector<std::string> words;  // of '0' and '1', each as wide
  int64_t repeats = 1;             // of the answer

  int64_t length() const { return static_cast<int64_t>(words.size()); }
};

struct Drawn {
  int64_t bits = 6, shortest = 1, longest = 8;
  int64_t repeats = 1;  // at most
};
Sequence draw(data::Random& random, const Drawn& how);

// "010011 110000", and for repeat-copy the number of repetitions: "010011 110000 x3".
std::string text_of(const Sequence& sequence, Job job);
// FileError names the line. `bits`: the width that words must have; 0: that of the first word.
Sequence parsed(std::string_view line, Job job, int64_t bits, const std::string& name,
                size_t number);
// A sequence a line.
std::vector<Sequence> read_sequences(const std::string& path, Job job, int64_t bits);

// A curriculum: how many words of a sequence are learned in an epoch, from 0. Each of the
// `curriculum` first epochs learns as many more as the others.
int64_t words_learned(int64_t epoch, int64_t curriculum, int64_t longest);

// The sequence, one word in each step; a step with a mark (and the number of repeats); then steps without
// input, in which the answer is expected. Repeat-copy ends its answer with a mark of its own.
int64_t answer_steps(const Sequence& sequence, Job job);
int64_t steps(const Sequence& sequence, Job job);
int64_t input_width(int64_t bits, Job job);   // bits, the mark, perhaps the number
int64_t output_width(int64_t bits, Job job);  // bits, perhaps the mark at the end

struct Encoded {
  torch::Tensor input;   // [steps, sequences, input width]
  torch::Tensor wanted;  // [steps, sequences, output width]
  torch::Tensor asked;   // [steps, sequences]: 1 where an answer is expected
};
Encoded encoded(const std::vector<Sequence>& sequences, Job job);

}  // namespace fovea::systems::machines
