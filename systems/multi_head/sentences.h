// Sentences of free word order: a suffix marks who acts (-a) and who is acted on (-o).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/random.h"

namespace fovea::systems::multi_head {

inline const std::vector<std::string> kNouns = {
    "dog",  "cat",   "fox",  "hen",  "wolf",  "bear",  "king", "girl",  "boy",   "monk",
    "crow", "mouse", "lion", "goat", "clown", "nurse", "poet", "thief", "judge", "queen"};
inline const std::vector<std::string> kVerbs = {"sees",   "hears",   "bites",   "finds",  "calls",
                                                "helps",  "follows", "paints",  "greets", "feeds",
                                                "scares", "teaches", "carries", "visits", "praises",
                                                "robs",   "kisses",  "chases",  "thanks", "warns"};
inline const std::vector<std::string> kOthers = {"today",  "often",   "gladly", "here", "again",
                                                 "slowly", "at-dawn", "never",  "soon", "abroad"};
inline const std::array<const char*, 3> kSlots = {"who", "did what", "to whom"};
inline constexpr int64_t kUnknown = 1;  // stems: 0 is padding; suffixes: 0 none, 1 -a, 2 -o
enum Suffix : int64_t { kNone = 0, kDoer = 1, kDoneTo = 2 };
inline const int64_t kStems =
    kUnknown + 1 + static_cast<int64_t>(kNouns.size() + kVerbs.size() + kOthers.size());

struct Sentence {
  std::vector<std::string> words;
  std::vector<int64_t> stems, suffixes;
  std::array<int64_t, 3> answers = {-1, -1, -1},
                         places = {-1, -1, -1};  // noun, verb, noun; and where they stand
};

Sentence sentence_of(const std::vector<std::string>& words);
Sentence draw(data::Random& random);
// One sentence on a line. Its answers are one known noun with -a, one with -o and one known verb.
void read_sentences(const std::string& path, std::vector<Sentence>& to);

}  // namespace fovea::systems::multi_head
