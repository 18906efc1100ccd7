// What generators of parallel text share: a corpus from a function that makes one pair, and a builder
// of a pair with its links.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/random.h"
#include "data/split.h"
#include "translate/corpus/corpus.h"

namespace fovea::translate {

template <class Make>
Corpus make_corpus(uint64_t seed, uint64_t purpose, Make make,
                   int64_t train = data::kGenerated.train) {
  Corpus corpus;
  data::Random random(data::mix(seed, purpose));
  for (const auto& [part, count] : {std::pair{&corpus.train, train},
                                    {&corpus.validation, data::kGenerated.validation},
                                    {&corpus.test, data::kGenerated.test}}) {
    for (int64_t i = 0; i < count; ++i) part->push_back(make(random));
  }
  return corpus;
}

// A source phrase and the order in which its words appear in the target.
class Builder {
 public:
  // Adds a source word; returns its position.
  int32_t source(const std::string& word) {
    pair_.source += (pair_.source.empty() ? "" : " ") + word;
    return n_source_++;
  }
  void target(int32_t position, const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      pair_.target += (pair_.target.empty() ? "" : " ") + word;
      if (words.size() == 1) pair_.links.sure.insert({position, n_target_});
      pair_.links.possible.insert({position, n_target_++});
    }
  }
  // The last target word may also come from this position.
  void also(int32_t position) { pair_.links.possible.insert({position, n_target_ - 1}); }
  Pair done() { return std::move(pair_); }

 private:
  Pair pair_;
  int32_t n_source_ = 0, n_target_ = 0;
};

struct Word {
  int32_t position;
  std::vector<std::string> target;
  int32_t also = -1;  // another position that its last word may come from
};

}  // namespace fovea::translate
