// Text as the sequences an encoder reads: [CLS] A [SEP], or [CLS] A [SEP] B [SEP], of which the first
// [SEP] belongs to A and the second to B.
#pragma once

#include <torch/types.h>

#include <string_view>
#include <vector>

#include "fovea/nn/bert.h"
#include "text/wordpiece/wordpiece.h"

namespace fovea::systems::bert {

struct Sequence {
  std::vector<int64_t> ids, segments;
  int64_t cut = 0;    // tokens that the context had no room for
  size_t second = 0;  // where B begins; 0: there is none
};

class Sequences {
 public:
  // `pieces` must outlive this.
  Sequences(const text::WordPiece& pieces, int64_t context);

  // A text that is too long loses its end; of two texts, the longer one does.
  Sequence one(std::vector<int64_t> a) const;
  Sequence two(std::vector<int64_t> a, std::vector<int64_t> b) const;
  // A line of text; a tab separates its two parts.
  Sequence line(std::string_view text) const;

 private:
  const text::WordPiece& pieces_;
  int64_t context_, cls_, sep_;
};

nn::BertInput packed(const std::vector<const Sequence*>& sequences, torch::Device device);
nn::BertInput packed(const Sequence& sequence, torch::Device device);

}  // namespace fovea::systems::bert
