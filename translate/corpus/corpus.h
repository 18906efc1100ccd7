// Parallel text: generated with its true alignment, or read from the files the field uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/alignment.h"
#include "train/types.h"

namespace fovea::translate {

struct Pair {
  std::string source, target;
  metrics::GoldLinks
      links;  // between words (or characters, for a corpus of characters); empty where not known
};

// A pair is recognised by its source: a sentence that was in the training is not new.
std::vector<uint64_t> keys_of(const std::vector<Pair>& pairs);

struct Corpus {
  std::vector<Pair> train = {}, validation = {}, test = {};
  size_t left_out = 0;  // pairs with an empty side, from which nothing is learnt
};
// "243 pairs to learn from, 28 to choose by, 29 to judge; 20 with an empty side left out"
std::string in_words(const Corpus& corpus);

// Spelled dates to ISO: ten surface forms, years 1900 to 2099. Links join characters: every
// character of a field with every character it is written from (possible, for which of them is read
// does not matter).
Corpus generate_dates(uint64_t seed);

// A made-up language pair with known reordering: 60 content words, each with one or two words for a
// translation, articles dropped, adjectives after nouns, verbs last. One-to-one links are sure, the
// others possible.
Corpus generate_reordered(uint64_t seed);

// English to German from a small grammar: cases, participles at the end, verbs last after "weil". One
// to three clauses. Each word has one sure link; that of an article to its noun is possible.
Corpus generate_german(uint64_t seed);

// "copy a b c" -> "a b c", "reverse a b c" -> "c b a".
Corpus generate_copy_reverse(uint64_t seed);

struct ParallelRequest {
  std::string path;  // a folder of PART.LANGUAGE[.gz], or one file of source<TAB>target lines
  std::string source, target;  // languages: the files' endings
  std::string test =
      "test";  // the test part's name; the others are "train" and "val" (or "validation", "dev")
  uint64_t seed = 1;       // of a file's split, which keeps equal sources on one side
  bool test_only = false;  // evaluate: only the test part is read
};
// Pairs with an empty side are left out of what is learnt and chosen by. Of a file split here they are
// left out of the test part too; a test part of its own stays whole.
// In a folder, PART.gold beside the two files of a part gives its links: `1-1 2p3` a line, counted
// from 1.
Corpus read_parallel(const ParallelRequest&);
// Such a folder, its files named as the request has them.
Written write_parallel(const ParallelRequest&, const std::vector<Pair>& train,
                       const std::vector<Pair>& validation, const std::vector<Pair>& test);
// Reads the links of `pairs` from a file with as many lines.
void read_links(const std::string& gold, std::vector<Pair>& pairs);

// NAME.src-tgt with `source ||| target` lines, and NAME.gold beside it with links counted from 1.
bool is_gold_corpus(const std::string& path);
std::vector<Pair> read_gold_corpus(const std::string& path);
// `source ||| target` or source<TAB>target; nothing where a line is neither.
std::optional<Pair> split_pair(std::string_view line);

}  // namespace fovea::translate
