// The teaching systems' sentences: of free word order, and with a pronoun.
#include "systems/multi_head/sentences.h"
#include "systems/scaled_dot_product/sentences.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_sentences(std::string_view bytes) {
  const std::string path = folder().write("a.txt", bytes);
  reads(path, [&] {
    std::vector<systems::multi_head::Sentence> read;
    systems::multi_head::read_sentences(path, read);
    for (const auto& sentence : read)
      for (const int64_t place : sentence.places)
        require(place >= 0 && place < static_cast<int64_t>(sentence.words.size()),
                "an answer stands in the sentence");
  });
  reads(path, [&] {
    namespace six_steps = systems::scaled_dot_product;
    const six_steps::Meaning meaning = six_steps::Meaning::kContext;
    for (const auto& sentence : six_steps::read_sentences(meaning, path)) {
      const auto words = static_cast<int64_t>(sentence.words.size());
      require(sentence.asks >= 0 && sentence.asks < words, "the pronoun stands in the sentence");
      require(sentence.meant >= -1 && sentence.meant < words, "what it means stands there too");
      require(sentence.answer < static_cast<int64_t>(six_steps::answers(meaning).size()),
              "the answer is one of those known");
    }
  });
}
const Registration sentences{"sentences", fuzz_sentences};

}  // namespace
}  // namespace fovea::fuzz
