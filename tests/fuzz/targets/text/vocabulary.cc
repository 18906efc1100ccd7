#include "data/formats/vocabulary.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_vocabulary(std::string_view bytes) {
  data::Vocabulary read;
  if (!reads("words.txt", [&] { read = data::Vocabulary::parse(std::string(bytes), "words.txt"); }))
    return;
  for (int64_t id = 0; id < read.size(); ++id)
    require(read.id(read.word(id)) == id, "a word has its number");
  require(data::Vocabulary::parse(read.text(), "words.txt").text() == read.text(),
          "a vocabulary survives being written");
}
const Registration vocabulary{"vocabulary", fuzz_vocabulary};

}  // namespace
}  // namespace fovea::fuzz
