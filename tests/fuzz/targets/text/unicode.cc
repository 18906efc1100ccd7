#include "metrics/unicode.h"

#include "data/files/file.h"
#include "tests/fuzz/target.h"
#include "translate/codec.h"

namespace fovea::fuzz {
namespace {

void fuzz_unicode(std::string_view bytes) {
  const std::u32string text = metrics::decode_utf8(bytes);
  const std::string again = metrics::encode_utf8(text);
  require(data::is_utf8(again), "what is decoded encodes as UTF-8");
  if (data::is_utf8(bytes)) require(again == bytes, "UTF-8 survives being decoded");
  require(data::is_utf8(translate::lower_case(bytes)), "small letters are UTF-8");
  for (const std::u32string& word : metrics::split(text)) {
    require(!word.empty(), "a word is not empty");
    for (const char32_t c : word) require(!metrics::is_space(c), "a word has no blank");
  }
  require(text.starts_with(metrics::strip_right(text)), "stripping takes from the end only");
}
const Registration unicode{"unicode", fuzz_unicode};

}  // namespace
}  // namespace fovea::fuzz
