// WordPiece: words, pieces, files. tests/python/command/test_wordpiece.py compares it with the
// `tokenizers` package.
#include "text/wordpiece/wordpiece.h"

#include <gtest/gtest.h>

#include "data/files/file.h"
#include "text/wordpiece/learn.h"
#include "text/wordpiece/read.h"

namespace fovea::text {
namespace {

using Ids = std::vector<int64_t>;

const std::string kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\ncafe\n!\n東\n京\ni\n";

std::vector<std::string> words_of(std::string_view text, const Normalisation& normalisation = {}) {
  std::vector<std::string> out;
  each_word(text, normalisation, [&](std::string_view word, size_t) { out.emplace_back(word); });
  return out;
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const data::FileError& error) {
    return error.what();
  }
  return "";
}

std::string tokenizer(const std::string& from, const std::string& to) {
  std::string text = tokenizer_bytes(parse_vocabulary(kVocabulary, "vocab.txt"));
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(WordPiece, WordsLoseAccentsCapitalsAndControlCharacters) {
  EXPECT_EQ(words_of("Caf\u00e9, \u00c5ngstr\u00f6m"),
            (std::vector<std::string>{"cafe", ",", "angstrom"}));
  EXPECT_EQ(words_of("a\x01"
                     "b\tc\u200dd\u3000e"),
            (std::vector<std::string>{"ab", "cd", "e"}));
  EXPECT_EQ(words_of("東京 x"), (std::vector<std::string>{"東", "京", "x"}));
  EXPECT_EQ(words_of("\u0130", {.strip_accents = false}), (std::vector<std::string>{"i\u0307"}));
  EXPECT_EQ(words_of("Ab", {.lower_case = false}), (std::vector<std::string>{"Ab"}));
}

TEST(WordPiece, AWordIsCutIntoTheLongestPiecesFromItsBeginning) {
  const WordPiece pieces = parse_vocabulary(kVocabulary, "vocab.txt");
  EXPECT_EQ(pieces.encode("Unaffable CAF\u00c9!"), (Ids{5, 6, 7, 8, 9}));
  EXPECT_EQ(pieces.encode("unx"), (Ids{1})) << "one piece missing: the whole word is unknown";
  EXPECT_EQ(pieces.encode(std::string(10'000, 'i')), (Ids{1}));
  EXPECT_EQ(pieces.encode("東京"), (Ids{10, 11}));
  EXPECT_TRUE(pieces.encode("").empty());
}

TEST(WordPiece, SpecialPiecesAreFoundInAText) {
  const WordPiece pieces = parse_vocabulary(kVocabulary, "vocab.txt");
  EXPECT_EQ(pieces.encode("un[MASK]un [mask"), (Ids{5, 4, 5, 1, 1}));
  EXPECT_TRUE(pieces.is_special(4));
  EXPECT_FALSE(pieces.is_special(5));
}

TEST(WordPiece, FilesSurviveBeingWritten) {
  const WordPiece pieces = parse_vocabulary(kVocabulary, "vocab.txt", {.lower_case = false});
  EXPECT_EQ(vocabulary_bytes(pieces), kVocabulary);
  const WordPiece again = parse_tokenizer(tokenizer_bytes(pieces), "tokenizer.json");
  EXPECT_EQ(again.table().pieces, pieces.table().pieces);
  EXPECT_EQ(again.table().specials, pieces.table().specials);
  EXPECT_FALSE(again.table().normalisation.lower_case);
  EXPECT_EQ(tokenizer_bytes(again), tokenizer_bytes(pieces));
}

TEST(WordPiece, AnotherKindOfTokenizerIsNamed) {
  const auto refused = [](const std::string& from, const std::string& to) {
    return message_of([&] { parse_tokenizer(tokenizer(from, to), "tokenizer.json"); });
  };
  EXPECT_EQ(refused("\"type\": \"WordPiece\",\n  \"unk", "\"type\": \"BPE\",\n  \"unk"),
            "tokenizer.json: model: 'BPE', expected WordPiece");
  EXPECT_EQ(refused("BertPreTokenizer", "ByteLevel"),
            "tokenizer.json: pre_tokenizer: 'ByteLevel', expected BertPreTokenizer, BERT's");
  EXPECT_EQ(refused("BertNormalizer", "NFC"),
            "tokenizer.json: normalizer: 'NFC', expected BertNormalizer, BERT's");
  EXPECT_EQ(refused("\"lstrip\": false", "\"lstrip\": true"),
            "tokenizer.json: added_tokens: '[PAD]' asks for lstrip, which is not here");
  EXPECT_EQ(refused("\"cafe\": 8", "\"cafe\": 7"),
            "tokenizer.json: number 7: given to '##able' and to 'cafe'");
  EXPECT_EQ(refused("\"cafe\": 8", "\"cafe\": -8"),
            "tokenizer.json: model.vocab: 'cafe': -8, expected 0 to 17");
  EXPECT_EQ(refused("\"unk_token\": \"[UNK]\"", "\"unk_token\": \"<unk>\""),
            "tokenizer.json: vocabulary: 13 pieces, but no '<unk>'");
  EXPECT_EQ(message_of([] { parse_tokenizer("{}", "t.json"); }),
            "t.json: model: missing, expected a WordPiece vocabulary");
}

TEST(WordPiece, AVocabularyWithoutUnknownOrWithDoublesIsRefused) {
  EXPECT_EQ(message_of([] { parse_vocabulary("a\nb\n", "vocab.txt"); }),
            "vocab.txt: vocabulary: 2 pieces, but no '[UNK]'");
  EXPECT_EQ(message_of([] { parse_vocabulary("[UNK]\nb\nb\n", "vocab.txt"); }),
            "vocab.txt: vocabulary: pieces 1 and 2 are both 'b', expected each once");
}

TEST(WordPiece, TheConfigurationSaysWhetherLettersAreMadeSmall) {
  const Normalisation cased =
      parse_normalisation(R"({"do_lower_case": false, "model_max_length": 512})", "c.json");
  EXPECT_FALSE(cased.lower_case);
  EXPECT_FALSE(cased.strip_accents) << "as letters are, unless it says otherwise";
  EXPECT_TRUE(parse_normalisation(R"({"strip_accents": null})", "c.json").strip_accents);
}

TEST(WordPiece, LearnsFrequentWordsWhole) {
  std::vector<std::string> lines(30, "the river the bank");
  lines.insert(lines.end(), 3, "thaw rivers");
  const WordPiece pieces = learn_wordpiece(lines, 60);
  EXPECT_EQ(pieces.piece(0), "[PAD]");
  EXPECT_EQ(pieces.piece(4), "[MASK]");
  ASSERT_TRUE(pieces.find("the"));
  EXPECT_EQ(pieces.encode("the"), (Ids{*pieces.find("the")}));
  EXPECT_EQ(pieces.encode("river").size(), 1u);
  EXPECT_EQ(pieces.encode("rivera").size(), 2u);
  EXPECT_EQ(pieces.encode("q"), (Ids{1}));
  EXPECT_EQ(learn_wordpiece(lines, 60).table().pieces, pieces.table().pieces);
  EXPECT_EQ(learn_wordpiece(lines, 10).size(), 10);
  EXPECT_THROW(learn_wordpiece({" "}, 10), InvalidArgument);
}

}  // namespace
}  // namespace fovea::text
