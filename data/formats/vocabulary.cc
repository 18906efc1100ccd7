#include "data/formats/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "data/files/file.h"
#include "fovea/error.h"

namespace fovea::data {
namespace {

using namespace std::string_view_literals;

constexpr const char* kSpecial[] = {"<pad>", "<unk>", "<s>", "</s>"};

// Whether a word can be written on a line and read back.
bool is_word(std::string_view text) {
  return !text.empty() && text.find_first_of("\n\r\0"sv) == std::string_view::npos && is_utf8(text);
}

}  // namespace

Vocabulary::Vocabulary() {
  for (const char* word : kSpecial) add(word);
}

void Vocabulary::add(std::string word) {
  ids_.emplace(word, size());
  words_.push_back(std::move(word));
}

Vocabulary Vocabulary::of(const std::vector<std::vector<std::string>>& sentences,
                          const Limits& limits) {
  std::map<std::string, int64_t> counts;
  for (const auto& sentence : sentences)
    for (const std::string& word : sentence) ++counts[word];
  Vocabulary vocabulary;
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [word, count] : counts)
    if (count >= limits.least_count && is_word(word) && !vocabulary.has(word))
      order.emplace_back(-count, word);
  std::sort(order.begin(), order.end());
  if (limits.most_words > 0 && order.size() > static_cast<size_t>(limits.most_words))
    order.resize(static_cast<size_t>(limits.most_words));
  for (auto& [count, word] : order) vocabulary.add(std::move(word));
  return vocabulary;
}

int64_t Vocabulary::id(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? kUnk : found->second;
}

bool Vocabulary::has(std::string_view word) const { return ids_.find(word) != ids_.end(); }

const std::string& Vocabulary::word(int64_t id) const {
  if (id < 0 || id >= size())
    throw InvalidArgument(fmt::format("word number: {}, expected 0 to {}", id, size() - 1));
  return words_[static_cast<size_t>(id)];
}

std::vector<int64_t> Vocabulary::ids(const std::vector<std::string>& words) const {
  std::vector<int64_t> out;
  out.reserve(words.size());
  for (const std::string& word : words) out.push_back(id(word));
  return out;
}

std::string Vocabulary::text() const {
  std::string out;
  for (const std::string& word : words_) out += word + "\n";
  return out;
}

Vocabulary Vocabulary::parse(const std::string& text, const std::string& path) {
  Vocabulary out;
  size_t lines = 0;
  each_line(std::string_view(text), path, [&](size_t line, std::string_view word) {
    lines = line;
    if (line <= std::size(kSpecial)) {
      if (word != kSpecial[line - 1])
        throw FileError(path, line,
                        fmt::format("expected {}, found {}", kSpecial[line - 1], shown(word)));
      return;
    }
    if (!is_word(word))
      throw FileError(
          path, line,
          fmt::format("expected a word without an end of a line in it, found {}", shown(word)));
    if (out.has(word))
      throw FileError(path, line, fmt::format("expected a new word, found {}", shown(word)));
    out.add(std::string(word));
  });
  if (lines < std::size(kSpecial))
    throw FileError(path, 0, "expected the four special words first");
  return out;
}

}  // namespace fovea::data
