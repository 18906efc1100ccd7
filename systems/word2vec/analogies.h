// Analogies of everyday words: `from` is to `to` as `like` is to `answer`.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace fovea::systems::word2vec {

struct Analogy {
  std::string from, to, like, answer;
};

// Every ordered pair of pairs within a family. A pair is asked only in the direction in which it is
// written.
inline std::vector<Analogy> analogies() {
  using Pair = std::array<const char*, 2>;
  static const std::vector<std::vector<Pair>> kFamilies = {
      {{"man", "woman"},
       {"boy", "girl"},
       {"he", "she"},
       {"his", "her"},
       {"father", "mother"},
       {"son", "daughter"},
       {"actor", "actress"},
       {"king", "queen"}},
      {{"man", "men"},
       {"woman", "women"},
       {"boy", "boys"},
       {"girl", "girls"},
       {"dog", "dogs"},
       {"film", "films"},
       {"movie", "movies"},
       {"child", "children"},
       {"character", "characters"},
       {"story", "stories"}},
      {{"play", "playing"},
       {"run", "running"},
       {"walk", "walking"},
       {"sit", "sitting"},
       {"stand", "standing"},
       {"look", "looking"},
       {"make", "making"}},
      {{"good", "better"},
       {"big", "bigger"},
       {"large", "larger"},
       {"small", "smaller"},
       {"old", "older"},
       {"young", "younger"}},
  };
  std::vector<Analogy> out;
  for (const auto& family : kFamilies)
    for (const Pair& a : family)
      for (const Pair& b : family)
        if (a != b) out.push_back({a[0], a[1], b[0], b[1]});
  return out;
}

}  // namespace fovea::systems::word2vec
