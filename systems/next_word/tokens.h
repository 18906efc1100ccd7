// Text as the numbers a language model reads: words, characters or pieces learned from the training
// text, or the byte-pair pieces of a llama2.c tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/llama2c.h"
#include "translate/codec.h"

namespace fovea::systems::next_word {

class Tokens {
 public:
  virtual ~Tokens() = default;
  virtual std::vector<int64_t> encode(std::string_view text) const = 0;  // without begin and end
  // Of a text from its beginning; begin and end are left out.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  // The words of a text that have no token, each once.
  virtual std::vector<std::string> unknown(std::string_view text) const = 0;
  virtual std::string piece(int64_t id) const = 0;  // for pictures
  virtual int64_t size() const = 0;
  virtual int64_t begin() const = 0;
  virtual int64_t end() const = 0;
  virtual bool ends(int64_t id) const = 0;        // whether a text stops there
  virtual std::string_view line_end() const = 0;  // what lines of one text are joined with
  virtual std::string bytes() const = 0;          // what tokens_from_bytes takes
  // The file that llama2.c reads them from; empty: they are no such pieces.
  virtual std::string llama2c_bytes() const { return {}; }
};

std::unique_ptr<Tokens> tokens_of(std::unique_ptr<translate::Codec> codec);
std::unique_ptr<Tokens> tokens_of(data::Llama2cTokens pieces);
// The text from its beginning: the token `begin`, then those of the text.
std::vector<int64_t> ids_of(const Tokens& tokens, std::string_view text);
// `name` is for messages.
std::unique_ptr<Tokens> tokens_from_bytes(std::string_view bytes, const std::string& name);

}  // namespace fovea::systems::next_word
