// Pairs of parts of a document, the second of which follows the first or comes from another document.
#pragma once

#include <cstdint>
#include <vector>

#include "data/random.h"
#include "systems/bert/documents.h"
#include "text/wordpiece/wordpiece.h"

namespace fovea::systems::bert {

using Part = std::vector<int32_t>;  // numbers of pieces

struct Pair {
  size_t document = 0, part = 0;  // this part and the next one
};

class Pairs {
 public:
  // Sentences are joined to parts of at most half of what the context has room for. A document of one
  // part is cut in the middle. InvalidArgument where fewer than two documents have parts.
  Pairs(const std::vector<const Sentences*>& documents, const text::WordPiece& pieces,
        int64_t context);

  int64_t size() const { return static_cast<int64_t>(pairs_.size()); }
  int64_t length(int64_t pair) const;
  struct Drawn {
    std::vector<int64_t> first, second;
    bool follows = true;
  };
  // Half of them true, half with a second part of another document.
  Drawn draw(int64_t pair, data::Random& random) const;

 private:
  std::vector<std::vector<Part>> documents_;
  std::vector<Pair> pairs_;
};

}  // namespace fovea::systems::bert
