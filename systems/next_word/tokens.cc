#include "systems/next_word/tokens.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "data/files/file.h"
#include "metrics/unicode.h"

namespace fovea::systems::next_word {
namespace {

constexpr std::string_view kLlamaMagic = "fovea llama2c 1\n";

class CodecTokens : public Tokens {
 public:
  explicit CodecTokens(std::unique_ptr<translate::Codec> codec) : codec_(std::move(codec)) {}

  std::vector<int64_t> encode(std::string_view text) const override {
    return codec_->encode(text).ids;
  }
  std::string decode(std::span<const int64_t> ids) const override { return codec_->decode(ids); }
  std::vector<std::string> unknown(std::string_view text) const override {
    return codec_->unknown(text);
  }
  std::string piece(int64_t id) const override { return codec_->piece(id); }
  int64_t size() const override { return codec_->size(); }
  int64_t begin() const override { return translate::kBegin; }
  int64_t end() const override { return translate::kEnd; }
  bool ends(int64_t id) const override { return id == translate::kEnd; }
  std::string_view line_end() const override { return " "; }
  std::string bytes() const override { return codec_->bytes(); }

 private:
  std::unique_ptr<translate::Codec> codec_;
};

// Byte-pair pieces with scores: of all neighbours that together make a piece, those with the
// highest score are joined (of equal ones the leftmost), until no neighbours make one. A character
// without a piece is written as its bytes.
class LlamaTokens : public Tokens {
 public:
  static constexpr int64_t kBegin = 1, kEnd = 2, kFirstByte = 3, kFirstPiece = 259;

  explicit LlamaTokens(data::Llama2cTokens pieces) : pieces_(std::move(pieces)) {
    for (size_t i = kFirstPiece; i < pieces_.pieces.size(); ++i)
      ids_.emplace(pieces_.pieces[i], static_cast<int64_t>(i));
  }

  std::vector<int64_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  std::vector<std::string> unknown(std::string_view) const override { return {}; }
  std::string piece(int64_t id) const override {
    if (id >= kFirstByte && id < kFirstPiece) {
      const std::string byte(1, static_cast<char>(id - kFirstByte));
      return data::visible(byte);
    }
    return data::visible(pieces_.pieces.at(static_cast<size_t>(id)));
  }
  int64_t size() const override { return static_cast<int64_t>(pieces_.pieces.size()); }
  int64_t begin() const override { return kBegin; }
  int64_t end() const override { return kEnd; }
  bool ends(int64_t id) const override { return id == kBegin || id == kEnd; }
  std::string_view line_end() const override { return "\n"; }
  std::string bytes() const override { return std::string(kLlamaMagic) + llama2c_bytes(); }
  std::string llama2c_bytes() const override { return data::llama2c_token_bytes(pieces_); }

 private:
  int64_t id(const std::string& piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? -1 : found->second;
  }
  std::vector<int64_t> joined(std::vector<int64_t> ids) const;

  data::Llama2cTokens pieces_;
  std::unordered_map<std::string, int64_t> ids_;
};

std::vector<int64_t> LlamaTokens::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  if (text.empty()) return ids;
  // Every word has its blank before it, the first one too.
  if (const int64_t blank = id(" "); blank >= 0) ids.push_back(blank);
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (end < text.size() && end < at + 4 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80)
      ++end;
    const std::string character(text.substr(at, end - at));
    if (const int64_t known = id(character); known >= 0)
      ids.push_back(known);
    else
      for (const char byte : character) ids.push_back(kFirstByte + static_cast<uint8_t>(byte));
    at = end;
  }
  return joined(std::move(ids));
}

std::vector<int64_t> LlamaTokens::joined(std::vector<int64_t> ids) const {
  const auto count = static_cast<int64_t>(ids.size());
  std::vector<int64_t> next(ids.size()), before(ids.size());
  for (int64_t i = 0; i < count; ++i) {
    next[static_cast<size_t>(i)] = i + 1 < count ? i + 1 : -1;
    before[static_cast<size_t>(i)] = i - 1;
  }
  struct Pair {
    float score;
    int64_t left, right, left_id, right_id, id;
    bool operator<(const Pair& other) const {  // the last of a queue's order comes first
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  std::priority_queue<Pair> pairs;
  const auto offer = [&](int64_t left) {
    if (left < 0) return;
    const int64_t right = next[static_cast<size_t>(left)];
    if (right < 0) return;
    const int64_t a = ids[static_cast<size_t>(left)], b = ids[static_cast<size_t>(right)];
    const int64_t both =
        id(pieces_.pieces[static_cast<size_t>(a)] + pieces_.pieces[static_cast<size_t>(b)]);
    if (both >= 0) pairs.push({pieces_.scores[static_cast<size_t>(both)], left, right, a, b, both});
  };
  for (int64_t i = 0; i + 1 < count; ++i) offer(i);
  while (!pairs.empty()) {
    const Pair best = pairs.top();
    pairs.pop();
    const auto left = static_cast<size_t>(best.left), right = static_cast<size_t>(best.right);
    // One of the two has been joined with another since.
    if (ids[left] != best.left_id || next[left] != best.right || ids[right] != best.right_id)
      continue;
    ids[left] = best.id;
    ids[right] = -1;
    next[left] = next[right];
    if (next[right] >= 0) before[static_cast<size_t>(next[right])] = best.left;
    offer(before[left]);
    offer(best.left);
  }
  std::erase(ids, -1);
  return ids;
}

std::string LlamaTokens::decode(std::span<const int64_t> ids) const {
  std::string out;
  for (const int64_t id : ids) {
    if (ends(id)) continue;
    if (id >= kFirstByte && id < kFirstPiece)
      out += static_cast<char>(id - kFirstByte);
    else
      out += pieces_.pieces.at(static_cast<size_t>(id));
  }
  return out.starts_with(' ') ? out.substr(1) : out;
}

}  // namespace

std::unique_ptr<Tokens> tokens_of(std::unique_ptr<translate::Codec> codec) {
  return std::make_unique<CodecTokens>(std::move(codec));
}
std::unique_ptr<Tokens> tokens_of(data::Llama2cTokens pieces) {
  return std::make_unique<LlamaTokens>(std::move(pieces));
}
std::vector<int64_t> ids_of(const Tokens& tokens, std::string_view text) {
  std::vector<int64_t> ids = {tokens.begin()};
  for (const int64_t id : tokens.encode(text)) ids.push_back(id);
  return ids;
}
std::unique_ptr<Tokens> tokens_from_bytes(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with(kLlamaMagic))
    return tokens_of(data::parse_llama2c_tokens(bytes.substr(kLlamaMagic.size()), name));
  return tokens_of(translate::codec_from_bytes(bytes, name));
}

}  // namespace fovea::systems::next_word
