#include "data/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "data/file.h"
#include "fovea/error.h"

namespace fovea::data {
namespace {

constexpr const char* kSpecial[] = {"<pad>", "<unk>", "<s>", "</s>"};

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
    if (count >= limits.least_count && !vocabulary.has(word)) order.emplace_back(-count, word);
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
  each_line(std::string_view(text), path, [&](size_t line, std::string_view word) {
    if (line <= 4) {
      if (word != kSpecial[line - 1])
        throw FileError(path, line,
                        fmt::format("expected {}, found {}", kSpecial[line - 1], shown(word)));
      return;
    }
    if (word.empty() || out.has(word))
      throw FileError(path, line, fmt::format("expected a new word, found {}", shown(word)));
    out.add(std::string(word));
  });
  if (std::count(text.begin(), text.end(), '\n') < 4)
    throw FileError(path, 0, "expected the four special words first");
  return out;
}

}  // namespace fovea::data
