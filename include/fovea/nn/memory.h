// End-to-end memory networks (Sukhbaatar et al. 2015): a question reads the lines of a story, hop
// after hop.
//
//   m_i = sum_j l_j ⊙ A x_ij + T_A(i),   c_i = sum_j l_j ⊙ C x_ij + T_C(i),   u = B q
//   o = sum_i a_i c_i,  a = softmax(u·m_i),   u <- u + o,   answer W u
//
// T counts lines back from the newest. Position encoding, word j of J, number c of d, both from 1:
//   l_cj = (1 - j/J) - (c/d)(1 - 2j/J)
// Adjacent tying: A of a hop is C of the one before, B = A of the first, W = C of the last.
// Layer-wise: all hops share A and C, B and W are their own, and u <- H u + o.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/attend.h"

namespace fovea::nn {

enum class Tying { kAdjacent, kLayerWise };
enum class LineEncoding {
  kPosition,
  kCentred,  // l_cj = 1 + 4 (c/d - (d+1)/2d)(j/J - (J+1)/2J), about twice kPosition: around 1
  // The same with one J for all lines, and the line's time as its word J: the authors' program. A
  // word then has the same factors in a short line as in a long one.
  kFixed,
  kBag,  // l = 1, the order of words is lost
};

// A story with fewer lines than slots leaves some of them empty.
enum class EmptySlots {
  kMasked,
  kWeighed,  // each has the score 0 and nothing to read, and takes its share: the authors' program
};

struct MemoryOptions {
  int64_t words = 0;  // of the vocabulary; word 0 is no word, and stays zero
  int64_t width = 0;  // d
  int64_t hops = 3;
  int64_t slots =
      50;  // most lines of a story, with a time of its own each; 0: no times, any length
  Tying tying = Tying::kAdjacent;
  LineEncoding encoding = LineEncoding::kPosition;
  int64_t longest = 0;  // kFixed: words of the longest line; J is one more
  EmptySlots empty_slots = EmptySlots::kMasked;
  double deviation = 0.1;  // of the first weights
};

// Stories one after another, each with a question; nothing is padded. A line may have no words:
// then it is its time alone. Random noise adds such lines. A story may have no lines.
struct Stories {
  at::Tensor words;            // int64 [words of all lines]
  at::Tensor lines;            // int32 [lines + 1]: where each line's words begin
  at::Tensor stories;          // int32 [stories + 1]: where each story's lines begin
  at::Tensor question_words;   // int64 [words of all questions]
  at::Tensor question_bounds;  // int32 [stories + 1]
  // int64 [lines], below the slots: each line's time. Not given: lines are counted back from the newest.
  at::Tensor ages = {};

  int64_t items() const { return stories.size(0) - 1; }
  Stories to(torch::Device device) const;
};

// One story as words, to be packed with others.
struct Asked {
  std::span<const std::vector<int64_t>> lines;  // of words; those before the question
  std::vector<int64_t> question;
  std::span<const int64_t> support = {};  // lines that the answer rests on, from 0, where known
};
enum class Noise {
  kEmptyLines,  // before each line with a chance: it takes a slot and a time
  kGaps,        // times alone: up to so large a share of them is passed over (the authors' program)
};
struct Remembering {
  int64_t slots = 50;  // the newest lines are kept
  double noise = 0;    // the chance, or the share
  Noise kind = Noise::kEmptyLines;
  uint64_t seed = 0;  // of the noise
};
struct Remembered {
  Stories stories;
  // Of each question: where its supporting lines are in the memory, and how many are forgotten.
  std::vector<std::vector<int64_t>> support;
  std::vector<int64_t> forgotten;
};
Remembered pack_stories(std::span<const Asked> asked, const Remembering& remembering);

// What a hop gave to attend, packed, one head.
struct Hop {
  at::Tensor query, key, value;  // [stories, 1, width], [lines, 1, width] twice
  Choices choices;
};

struct Recall {
  at::Tensor state;  // [stories, width]: u after the last hop
  std::vector<Hop> hops;
};

class MemoryImpl : public torch::nn::Cloneable<MemoryImpl> {
 public:
  explicit MemoryImpl(const MemoryOptions& options);
  void reset() override;

  // Scores of each word as the answer: [stories, words]; that of word 0 is 0.
  at::Tensor forward(const Stories& stories) { return answer(recall(stories).state); }
  // The same up to W. Linear start uses Unnormalised, the supervised networks of 2015 use Hard.
  Recall recall(const Stories& stories, const Normaliser& normaliser = Softmax{});
  at::Tensor answer(const at::Tensor& state);  // [stories, width] -> [stories, words]

  const MemoryOptions& options() const { return options_; }

 private:
  at::Tensor block(const at::Tensor& blocks, int64_t index) const;
  at::Tensor mixed_with_empty(const Hop& hop, const Stories& stories) const;
  at::Tensor lines_of(const Stories& stories) const;

  MemoryOptions options_;
  // Of a line, side by side: A, C = A, C = A, … of the hops (adjacent), or A and C (layer-wise).
  at::Tensor line_weight_;                      // [words, blocks * width]
  at::Tensor time_weight_;                      // [slots, blocks * width]
  at::Tensor question_weight_, answer_weight_;  // [words, width], layer-wise: B and W
  torch::nn::Linear hop_{nullptr};              // layer-wise: H
};
TORCH_MODULE(Memory);

}  // namespace fovea::nn
