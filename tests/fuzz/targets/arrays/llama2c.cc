#include "data/formats/llama2c.h"

#include "systems/next_word/tokens.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_checkpoint(std::string_view bytes) {
  data::Llama2c read;
  if (!reads("a.bin", [&] { read = data::parse_llama2c(bytes, "a.bin"); })) return;
  const data::Llama2c again = data::parse_llama2c(data::llama2c_bytes(read), "a.bin");
  require(again.width == read.width && again.vocabulary == read.vocabulary &&
              again.own_output == read.own_output && again.context == read.context,
          "sizes survive being written");
  for (const auto& [name, array] : read.arrays) {
    require(array.bytes.size() == data::byte_count(array.type, array.shape),
            "an array has as many bytes as its shape says");
    require(again.arrays.at(name).bytes == array.bytes, "an array survives being written");
  }
}
const Registration checkpoint{"llama2c", fuzz_checkpoint};

// The text after the last 0xFF byte is encoded with the tokenizer before it.
void fuzz_tokens(std::string_view bytes) {
  const size_t cut = bytes.rfind('\xFF');
  const std::string_view text = cut == bytes.npos ? "" : bytes.substr(cut + 1);
  data::Llama2cTokens read;
  if (!reads("tok.bin",
             [&] { read = data::parse_llama2c_tokens(bytes.substr(0, cut), "tok.bin"); }))
    return;
  const data::Llama2cTokens again =
      data::parse_llama2c_tokens(data::llama2c_token_bytes(read), "tok.bin");
  require(again.pieces == read.pieces, "pieces survive being written");
  const auto tokens = systems::next_word::tokens_of(std::move(read));
  for (const int64_t id : tokens->encode(text))
    require(id >= 0 && id < tokens->size(), "a token is one of the vocabulary");
}
const Registration tokens{"llama2c_tokens", fuzz_tokens};

}  // namespace
}  // namespace fovea::fuzz
