// Files of captions, in whatever form they seem to be.
#include "data/captions/caption_set.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_captions(std::string_view bytes) {
  const std::string name = "captions.txt";
  std::vector<data::Captioned> read;
  if (!reads(name, [&] { read = data::parse_captions(std::string(bytes), name); })) return;
  require(!read.empty(), "a file that is taken has pictures");
  for (const data::Captioned& one : read)
    for (const std::string& caption : one.captions)
      for (const std::string& word : data::caption_words(caption))
        require(!word.empty(), "a word has letters");
  const auto again = data::parse_captions(data::caption_lines(read), name);
  require(again.size() == read.size(), "captions survive being written");
  for (size_t i = 0; i < read.size(); ++i)
    require(again[i].image == read[i].image && again[i].captions == read[i].captions &&
                again[i].split == read[i].split && again[i].boxes.size() == read[i].boxes.size(),
            "captions survive being written");
}
const Registration captions{"captions", fuzz_captions};

}  // namespace
}  // namespace fovea::fuzz
