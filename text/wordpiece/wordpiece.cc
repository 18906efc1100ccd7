#include "text/wordpiece/wordpiece.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/files/file.h"
#include "fovea/error.h"

namespace fovea::text {
namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

WordPiece::WordPiece(PieceTable table) : table_(std::move(table)), special_(table_.pieces.size()) {
  numbers_.reserve(table_.pieces.size());
  for (size_t i = 0; i < table_.pieces.size(); ++i) {
    const auto [at, is_new] = numbers_.emplace(table_.pieces[i], static_cast<int64_t>(i));
    if (!is_new)
      throw InvalidArgument(
          fmt::format("vocabulary: pieces {} and {} are both {}, expected each once", at->second, i,
                      data::shown(table_.pieces[i])));
    longest_piece_ = std::max(longest_piece_, table_.pieces[i].size());
  }
  unknown_ = number(table_.unknown);
  for (const std::string& special : table_.specials) {
    if (special.empty()) throw InvalidArgument("specials: an empty piece, expected a text");
    specials_.push_back(number(special));
    special_[static_cast<size_t>(specials_.back())] = true;
    first_bytes_.push_back(special[0]);
  }
  std::stable_sort(specials_.begin(), specials_.end(),
                   [&](int64_t a, int64_t b) { return piece(a).size() > piece(b).size(); });
}

std::optional<int64_t> WordPiece::find(std::string_view piece) const {
  const auto found = numbers_.find(piece);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

int64_t WordPiece::number(std::string_view piece) const {
  const auto found = find(piece);
  if (!found)
    throw InvalidArgument(
        fmt::format("vocabulary: {} pieces, but no {}", size(), data::shown(piece)));
  return *found;
}

void WordPiece::encode_word(std::string_view word, size_t characters,
                            std::vector<int64_t>& out) const {
  if (characters > table_.longest_word) {
    out.push_back(unknown_);
    return;
  }
  const size_t before = out.size();
  std::string inside;  // what a piece inside the word is looked up by
  for (size_t start = 0; start < word.size();) {
    const std::string_view prefix = start > 0 ? std::string_view(table_.continuing) : "";
    inside.assign(prefix).append(word.substr(start, longest_piece_));
    size_t end = inside.size();
    auto found = numbers_.end();
    for (; end > prefix.size(); --end) {
      const size_t next = start + end - prefix.size();
      if (next < word.size() && !begins_character(word[next])) continue;
      found = numbers_.find(std::string_view(inside).substr(0, end));
      if (found != numbers_.end()) break;
    }
    if (found == numbers_.end()) {
      out.resize(before);
      out.push_back(unknown_);
      return;
    }
    out.push_back(found->second);
    start += end - prefix.size();
  }
}

void WordPiece::encode_plain(std::string_view text, std::vector<int64_t>& out) const {
  each_word(text, table_.normalisation,
            [&](std::string_view word, size_t characters) { encode_word(word, characters, out); });
}

std::vector<int64_t> WordPiece::encode(std::string_view text) const {
  std::vector<int64_t> out;
  size_t start = 0;
  for (size_t at = text.find_first_of(first_bytes_); at < text.size();
       at = text.find_first_of(first_bytes_, at)) {
    const auto found = std::find_if(specials_.begin(), specials_.end(), [&](int64_t id) {
      return text.substr(at).starts_with(piece(id));
    });
    if (found == specials_.end()) {
      ++at;
      continue;
    }
    encode_plain(text.substr(start, at - start), out);
    out.push_back(*found);
    start = at += piece(*found).size();
  }
  encode_plain(text.substr(start), out);
  return out;
}

}  // namespace fovea::text
