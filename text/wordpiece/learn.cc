#include "text/wordpiece/learn.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "fovea/error.h"
#include "metrics/unicode.h"

namespace fovea::text {
namespace {

using Pair = std::pair<int32_t, int32_t>;

struct Word {
  std::vector<int32_t> pieces;
  int64_t count = 0;
};

// What is known of the pairs that stand side by side. A pair's old places in the queue are left
// there; its count tells which one holds.
class Pairs {
 public:
  void add(Pair pair, int64_t count, size_t word) {
    counts_[pair] += count;
    if (count > 0) words_[pair].insert(word);
    touched_.insert(pair);
  }
  void queue_touched() {
    for (const Pair& pair : touched_)
      if (const int64_t count = counts_[pair]; count > 1) queue_.push({count, pair});
    touched_.clear();
  }
  // The most frequent pair that occurs twice or more, and the words it may be in.
  bool take(Pair& pair, std::set<size_t>& words) {
    while (!queue_.empty()) {
      const auto [count, best] = queue_.top();
      queue_.pop();
      if (counts_[best] != count) continue;
      pair = best;
      words = std::move(words_[best]);
      words_.erase(best);
      return true;
    }
    return false;
  }

 private:
  struct Less {
    bool operator()(const std::pair<int64_t, Pair>& a, const std::pair<int64_t, Pair>& b) const {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    }
  };
  std::map<Pair, int64_t> counts_;
  std::map<Pair, std::set<size_t>> words_;
  std::set<Pair> touched_;
  std::priority_queue<std::pair<int64_t, Pair>, std::vector<std::pair<int64_t, Pair>>, Less> queue_;
};

void count_pairs(const Word& word, size_t number, int64_t count, Pairs& pairs) {
  for (size_t i = 0; i + 1 < word.pieces.size(); ++i)
    pairs.add({word.pieces[i], word.pieces[i + 1]}, count, number);
}

void join_in(Word& word, Pair pair, int32_t joined) {
  std::vector<int32_t> out;
  for (size_t i = 0; i < word.pieces.size(); ++i) {
    const bool both = i + 1 < word.pieces.size() && word.pieces[i] == pair.first &&
                      word.pieces[i + 1] == pair.second;
    out.push_back(both ? joined : word.pieces[i]);
    i += both ? 1 : 0;
  }
  word.pieces = std::move(out);
}

// The characters of a word as pieces: all but the first with the mark of the inside.
std::vector<std::string> characters_of(const std::string& word, const std::string& continuing) {
  std::vector<std::string> out;
  for (const char32_t c : metrics::decode_utf8(word))
    out.push_back((out.empty() ? "" : continuing) + metrics::encode_utf8(std::u32string(1, c)));
  return out;
}

}  // namespace

WordPiece learn_wordpiece(const std::vector<std::string>& lines, int64_t size,
                          const Normalisation& normalisation) {
  PieceTable table{
      .pieces = kBertSpecials, .specials = kBertSpecials, .normalisation = normalisation};
  std::map<std::string, int64_t> counts;
  for (const std::string& line : lines)
    each_word(line, normalisation, [&](std::string_view word, size_t characters) {
      if (characters <= table.longest_word) ++counts[std::string(word)];
    });
  if (counts.empty()) throw InvalidArgument("text: no words, expected some to learn pieces from");

  std::map<std::string, int64_t> characters;
  for (const auto& [word, count] : counts)
    for (const std::string& piece : characters_of(word, table.continuing))
      characters[piece] += count;
  std::vector<std::pair<int64_t, std::string>> alphabet;
  for (const auto& [piece, count] : characters) alphabet.emplace_back(-count, piece);
  std::sort(alphabet.begin(), alphabet.end());
  std::map<std::string, int32_t> numbers;
  const auto put = [&](const std::string& piece) {
    const auto [at, is_new] = numbers.emplace(piece, static_cast<int32_t>(table.pieces.size()));
    if (is_new) table.pieces.push_back(piece);
    return at->second;
  };
  const auto full = [&] { return static_cast<int64_t>(table.pieces.size()) >= size; };
  for (const auto& [count, piece] : alphabet)
    if (!full()) put(piece);

  std::vector<Word> words;
  Pairs pairs;
  for (const auto& [word, count] : counts) {
    Word one{.count = count};
    for (const std::string& piece : characters_of(word, table.continuing))
      if (const auto found = numbers.find(piece); found != numbers.end())
        one.pieces.push_back(found->second);
    words.push_back(std::move(one));
    count_pairs(words.back(), words.size() - 1, count, pairs);
  }
  pairs.queue_touched();
  Pair pair;
  std::set<size_t> in;
  while (!full() && pairs.take(pair, in)) {
    const std::string& second = table.pieces[static_cast<size_t>(pair.second)];
    const int32_t joined =
        put(table.pieces[static_cast<size_t>(pair.first)] + second.substr(table.continuing.size()));
    for (const size_t number : in) {
      Word& word = words[number];
      count_pairs(word, number, -word.count, pairs);
      join_in(word, pair, joined);
      count_pairs(word, number, word.count, pairs);
    }
    pairs.queue_touched();
  }
  return WordPiece(std::move(table));
}

}  // namespace fovea::text
