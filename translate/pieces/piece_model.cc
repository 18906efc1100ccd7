#include "translate/pieces/piece_model.h"

#include <sentencepiece_processor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>
#include <vector>

#include "data/files/file.h"

namespace fovea::translate {
namespace {

// Fields of sentencepiece_model.proto.
constexpr uint64_t kNormaliser = 3, kDenormaliser = 5, kCompiledRules = 2;

// A protocol buffer's message, field by field; only its texts are reported.
class Message {
 public:
  Message(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  void each_text(const std::function<void(uint64_t field, std::string_view text)>& tell) {
    while (at_ < bytes_.size()) {
      const uint64_t tag = number();
      switch (tag & 7) {
        case 0:
          number();
          break;
        case 1:
          skip(8);
          break;
        case 2: {
          const uint64_t length = number();
          const size_t start = at_;
          skip(length);
          tell(tag >> 3, bytes_.substr(start, length));
          break;
        }
        case 5:
          skip(4);
          break;
        default:
          refuse();
      }
    }
  }

 private:
  [[noreturn]] void refuse() const {
    throw data::FileError(name_, 0, "not a SentencePiece model, or a damaged one");
  }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) refuse();
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    refuse();
  }
  void skip(uint64_t length) {
    if (length > bytes_.size() - at_) refuse();
    at_ += length;
  }

  std::string_view bytes_;
  const std::string& name_;
  size_t at_ = 0;
};

uint32_t word_at(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

// A unit of the double array, as darts-clone packs it.
struct Unit {
  uint32_t bits;
  bool leads(uint32_t byte) const { return (bits & 0x800000FFu) == byte; }
  bool has_value() const { return (bits >> 8 & 1) != 0; }
  uint32_t value() const { return bits & 0x7FFFFFFFu; }
  uint32_t offset() const { return (bits >> 10) << ((bits & 0x200u) >> 6); }
};

// Whether every step that some text can lead to stays inside, and every value is a place in `texts`
// bytes of replacements.
bool trie_is_closed(std::string_view units, size_t texts) {
  const size_t count = units.size() / 4;
  const auto unit = [&](size_t i) { return Unit{word_at(units, 4 * i)}; };
  std::vector<bool> seen(count);
  std::vector<size_t> open = {0};
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    const size_t base = node ^ unit(node).offset();
    if ((base | 0xFF) >= count) return false;
    if (node != 0 && unit(node).has_value() && unit(base).value() >= texts) return false;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const size_t next = base ^ byte;
      if (!unit(next).leads(byte) || seen[next]) continue;
      seen[next] = true;
      open.push_back(next);
    }
  }
  return true;
}

// The rules: the trie's size in bytes, the trie, and the replacements, each ended by a zero byte.
bool rules_are_closed(std::string_view rules) {
  if (rules.empty()) return true;  // none: text is taken as it is
  if (rules.size() < 4) return false;
  const size_t trie = word_at(rules, 0);
  if (trie == 0 || trie % 4 != 0 || trie >= rules.size() - 4 || rules.back() != '\0') return false;
  return trie_is_closed(rules.substr(4, trie), rules.size() - 4 - trie);
}

void check_rules(std::string_view model, const std::string& name) {
  Message(model, name).each_text([&](uint64_t part, std::string_view bytes) {
    if (part != kNormaliser && part != kDenormaliser) return;
    Message(bytes, name).each_text([&](uint64_t field, std::string_view rules) {
      if (field == kCompiledRules && !rules_are_closed(rules))
        throw data::FileError(name, 0,
                              "a damaged SentencePiece model: its rules of normalisation lead "
                              "outside of themselves");
    });
  });
}

}  // namespace

std::unique_ptr<sentencepiece::SentencePieceProcessor> open_piece_model(const std::string& model,
                                                                        const std::string& name) {
  check_rules(model, name);
  auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  std::string reason;
  try {
    if (const auto status = processor->LoadFromSerializedProto(model); !status.ok())
      reason = status.ToString();
  } catch (const std::exception& error) {
    // Of the library's tries, which take a piece for text that ends at the first zero byte.
    reason = error.what();
  }
  if (!reason.empty()) throw data::FileError(name, 0, "not a SentencePiece model (" + reason + ")");
  return processor;
}

}  // namespace fovea::translate
