// Text to words and sentences, as the systems of words take it.
#include "text/tokens.h"

#include "data/files/file.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_tokens(std::string_view input) {
  Bytes bytes(input);
  const size_t longest = 1 + bytes.below(40);
  if (!data::is_utf8(bytes.rest())) return;
  for (const char* name : {"spaces", "words"}) {
    const auto tokeniser = text::tokeniser_named(name);
    for (const std::string& word : tokeniser->split(bytes.rest())) {
      require(!word.empty(), "a word is not empty");
      require(data::is_utf8(word), "a word is UTF-8");
    }
    for (const text::Words& sentence : text::sentences(*tokeniser, bytes.rest(), longest))
      require(!sentence.empty() && sentence.size() <= longest,
              "a sentence has words, and no more than allowed");
  }
}
const Registration tokens{"tokens", fuzz_tokens};

}  // namespace
}  // namespace fovea::fuzz
