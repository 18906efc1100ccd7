// Words and their numbers. PAD 0, UNK 1, BOS 2, EOS 3, then words by falling frequency, ties in
// byte order. A word is UTF-8, not empty, and holds no line feed, return or NUL: it has a line of its
// file to itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fovea::data {

inline constexpr int64_t kPad = 0, kUnk = 1, kBos = 2, kEos = 3;

class Vocabulary {
 public:
  Vocabulary();  // the four special words

  struct Limits {
    int64_t least_count = 1;  // rarer words are UNK
    int64_t most_words = 0;   // besides the four; 0: no limit
  };
  // A token that cannot be a word (a stray carriage return among characters) is UNK.
  static Vocabulary of(const std::vector<std::vector<std::string>>& sentences,
                       const Limits& limits);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  int64_t id(std::string_view word) const;  // kUnk where unknown
  bool has(std::string_view word) const;
  const std::string& word(int64_t id) const;  // InvalidArgument out of range
  std::vector<int64_t> ids(const std::vector<std::string>& words) const;

  // One word on each line, including the special ones; and back, from a file that may be damaged.
  std::string text() const;
  static Vocabulary parse(const std::string& text, const std::string& path);

 private:
  void add(std::string word);

  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::string> words_;
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> ids_;
};

}  // namespace fovea::data
