// Codecs, generated corpora and files of parallel text.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "fovea/error.h"
#include "translate/codec.h"
#include "translate/corpus/corpus.h"

namespace fovea::translate {
namespace {

const std::vector<std::string> kLines = {"the cat sat on the mat", "the dog saw the cat",
                                         "a Größe is a size"};

TEST(Codec, EveryKindReadsBackWhatItWrote) {
  for (const CodecKind kind : {CodecKind::kWords, CodecKind::kCharacters, CodecKind::kPieces}) {
    const auto codec = learn_codec(kLines, {.kind = kind, .size = 60});
    const auto again = codec_from_bytes(codec->bytes(), "again");
    for (const std::string& line : kLines) {
      const Encoded e = codec->encode(line);
      EXPECT_EQ(codec->decode(e.ids), line);
      EXPECT_EQ(again->encode(line).ids, e.ids);
      EXPECT_EQ(e.words.size(), e.ids.size());
    }
  }
}

TEST(Codec, PiecesKnowTheirWords) {
  const auto codec = learn_codec(kLines, {.kind = CodecKind::kPieces, .size = 30});
  const Encoded e = codec->encode("the mats");
  EXPECT_EQ(e.words.front(), 0);
  EXPECT_EQ(e.words.back(), 1);
}

TEST(Codec, UnknownWordsAreUnknown) {
  const auto codec = learn_codec(kLines, {.kind = CodecKind::kWords, .min_count = 2});
  EXPECT_EQ(codec->encode("cat zebra").ids.back(), kUnknown);
  EXPECT_TRUE(codec->encode("").ids.empty());
}

TEST(Codec, LowerCaseKeepsLettersThatHaveNoCapital) {
  EXPECT_EQ(lower_case("THE GRÖSSE der Straße"), "the grösse der straße");
}

TEST(Codec, RefusesWhatIsNoModel) {
  EXPECT_THROW(codec_from_bytes("not a model", "bad.model"), InvalidArgument);
  EXPECT_THROW(codec_from_bytes("fovea words 1\nno specials\n", "bad"), InvalidArgument);
  EXPECT_THROW(codec_kind("syllables"), InvalidArgument);
}

// Among characters it would be a word that no line of the vocabulary can hold.
TEST(Codec, AStrayReturnAmongCharactersIsUnknown) {
  const auto codec = learn_codec({"ab\rc"}, {.kind = CodecKind::kCharacters, .size = 60});
  EXPECT_EQ(codec->unknown("a\rb"), std::vector<std::string>{"\r"});
  EXPECT_EQ(codec_from_bytes(codec->bytes(), "again")->bytes(), codec->bytes());
}

// Four special pieces and one more, as a protocol buffer.
std::string model_with(const std::string& piece) {
  constexpr char kNormal = 1, kUnknownPiece = 2, kControl = 3;
  std::string model;
  const auto add = [&](const std::string& text, char type) {
    std::string one = {'\x0a', static_cast<char>(text.size())};
    one += text;
    one += {'\x18', type};
    model += {'\x0a', static_cast<char>(one.size())};
    model += one;
  };
  add("<pad>", kControl), add("<unk>", kUnknownPiece), add("<s>", kControl), add("</s>", kControl);
  add(piece, kNormal);
  return model;
}

TEST(Codec, WhatThePieceLibraryThrowsIsARefusal) {
  EXPECT_EQ(codec_from_bytes(model_with("a"), "good.model")->size(), 5);
  try {
    codec_from_bytes(model_with(std::string("\0a", 2)), "bad.model");
    FAIL() << "expected an error";
  } catch (const InvalidArgument& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("bad.model: not a SentencePiece model ("))
        << error.what();
  }
}

// The library follows the numbers of a model's rules blindly: each change is refused or harmless.
TEST(Codec, ADamagedModelIsRefusedBeforeTheLibraryFollowsIt) {
  std::vector<std::string> lines(50, "the cat sees the river and the river sees the cat");
  const std::string good = learn_codec(lines, {.kind = CodecKind::kPieces, .size = 40})->bytes();
  ASSERT_NO_THROW(codec_from_bytes(good, "good.model"));
  // The rules stand behind their name, a field's head of a few bytes, and the size of the trie.
  const size_t rules = good.find("nmt_nfkc") + 8;
  int refused = 0;
  for (size_t at = rules; at < rules + 24; ++at) {
    for (const char to : {'\x47', '\xff'}) {
      std::string bad = good;
      bad[at] = to;
      try {
        const auto codec = codec_from_bytes(bad, "bad.model");
        codec->decode(codec->encode("the ﬁne cat sees ½ of the river").ids);
      } catch (const InvalidArgument& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("bad.model: ")) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 10);
}

TEST(Generate, TheSameSeedGivesTheSameText) {
  EXPECT_EQ(generate_dates(3).train[17].source, generate_dates(3).train[17].source);
  EXPECT_NE(generate_dates(3).train[17].source + generate_dates(3).train[18].source,
            generate_dates(4).train[17].source + generate_dates(4).train[18].source);
}

TEST(Generate, DatesHaveTenFormsAndTrueFields) {
  const Corpus corpus = generate_dates(1);
  EXPECT_EQ(corpus.train.size(), 4000u);
  EXPECT_EQ(corpus.test.size(), 1000u);
  for (const Pair& pair : corpus.test) {
    ASSERT_EQ(pair.target.size(), 10u);
    const int month = std::stoi(pair.target.substr(5, 2)),
              day = std::stoi(pair.target.substr(8, 2));
    EXPECT_TRUE(month >= 1 && month <= 12 && day >= 1 && day <= 31) << pair.target;
    // The year's digits stand in the source as they are.
    std::string year;
    std::set<int32_t> places;
    for (const metrics::Link& link : pair.links.possible) {
      if (link.target == 0) places.insert(link.source);
    }
    for (const int32_t p : places) year += pair.source[static_cast<size_t>(p)];
    EXPECT_EQ(year, pair.target.substr(0, 4)) << pair.source;
  }
}

TEST(Generate, ReorderedLinksCoverEveryTargetWord) {
  for (const Pair& pair : generate_reordered(1).test) {
    const auto count = [](const std::string& s) {
      return static_cast<int32_t>(std::count(s.begin(), s.end(), ' ') + 1);
    };
    std::set<int32_t> linked;
    for (const metrics::Link& link : pair.links.possible) {
      EXPECT_LT(link.source, count(pair.source));
      linked.insert(link.target);
    }
    EXPECT_EQ(static_cast<int32_t>(linked.size()), count(pair.target));
    for (const metrics::Link& link : pair.links.sure)
      EXPECT_TRUE(pair.links.possible.contains(link));
  }
}

TEST(Generate, GermanHasItsVerbLastAfterWeilAndALinkForEveryWord) {
  const auto words = [](const std::string& text) {
    std::istringstream in(text);
    return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
  };
  size_t subordinate = 0, longest = 0;
  for (const Pair& pair : generate_german(1).test) {
    const std::vector<std::string> english = words(pair.source), german = words(pair.target);
    ASSERT_EQ(english.size(), german.size());
    longest = std::max(longest, english.size());
    EXPECT_EQ(pair.links.sure.size(), german.size());
    for (const metrics::Link& link : pair.links.sure) {
      const std::string& from = english[static_cast<size_t>(link.source)];
      const std::string& to = german[static_cast<size_t>(link.target)];
      if (from == "has") {
        EXPECT_EQ(to, "hat");
      }
      if (from == "dog") {
        EXPECT_EQ(to, "Hund");
      }
      if (from == "the") {
        EXPECT_TRUE(to == "der" || to == "die" || to == "das" || to == "den");
      }
    }
    // "… because SUBJECT VERB OBJECT" at the end is "… weil SUBJECT OBJECT VERB".
    const auto because = std::find(english.rbegin(), english.rend(), "because");
    const auto join = std::find(english.rbegin(), english.rend(), "and");
    if (because < join && std::find(english.rbegin(), because, "sees") != because) {
      ++subordinate;
      EXPECT_EQ(german.back(), "sieht") << pair.target;
    }
  }
  EXPECT_GT(subordinate, 5u);
  EXPECT_GT(longest, 20u);
}

TEST(Generate, ReverseTurnsAndCopyKeeps) {
  for (const Pair& pair : generate_copy_reverse(1).test) {
    std::string letters = pair.source.substr(pair.source.find(' ') + 1);
    if (pair.source.starts_with("reverse")) letters = std::string(letters.rbegin(), letters.rend());
    EXPECT_EQ(letters, pair.target);
  }
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("fovea_parallel_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  std::filesystem::path folder_;
};

TEST_F(Files, AFolderOfParts) {
  for (const char* part : {"train", "val", "test_2016"}) {
    write(std::string(part) + ".en", "a\nb\n");
    write(std::string(part) + ".de", "x\ny\n");
  }
  const Corpus corpus = read_parallel(
      {.path = folder_.string(), .source = "en", .target = "de", .test = "test_2016"});
  EXPECT_EQ(corpus.train[1].target, "y");
  EXPECT_EQ(corpus.test.size(), 2u);
}

TEST_F(Files, NothingIsLearntFromAnEmptySide) {
  const ParallelRequest folder{.path = folder_.string(), .source = "en", .target = "de"};
  write("train.en", "a\n\nc\n"), write("train.de", "x\ny\n \n");
  write("val.en", "a\n\n"), write("val.de", "x\n\n");
  write("test.en", "a\n\n"), write("test.de", "x\ny\n");
  const Corpus parts = read_parallel(folder);
  EXPECT_EQ(in_words(parts),
            "1 pairs to learn from, 1 to choose by, 2 to judge; 3 with an empty side left out");
  write("pairs.tsv", "a\tx\n\ty\nb\t\nc\tz\t\t\nd\tw\n");
  const ParallelRequest table{.path = (folder_ / "pairs.tsv").string()};
  EXPECT_EQ(in_words(read_parallel(table)),
            "1 pairs to learn from, 1 to choose by, 1 to judge; 2 with an empty side left out");
  write("pairs.tsv", "a\tx\tCC-BY\n");
  try {
    read_parallel(table);
    ADD_FAILURE() << "three columns";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(
        std::string(error.what()).find("pairs.tsv:1: expected source<TAB>target, found 3 columns"),
        std::string::npos)
        << error.what();
  }
}

TEST_F(Files, MistakesAreNamed) {
  write("train.en", "a\nb\n");
  write("train.de", "x\n");
  write("val.en", "a\n"), write("val.de", "x\n"), write("test.en", "a\n"), write("test.de", "x\n");
  const ParallelRequest request{.path = folder_.string(), .source = "en", .target = "de"};
  EXPECT_THROW(read_parallel(request), InvalidArgument);  // lines differ
  std::filesystem::remove(folder_ / "train.de");
  EXPECT_THROW(read_parallel(request), InvalidArgument);  // one side only
  EXPECT_THROW(read_parallel({.path = folder_.string(), .source = "en", .target = "fr"}),
               InvalidArgument);
}

TEST_F(Files, ATableKeepsEqualSourcesOnOneSide) {
  std::string table;
  for (int i = 0; i < 600; ++i)
    table += "s" + std::to_string(i / 3) + "\tt" + std::to_string(i) + "\n";
  write("pairs.tsv", table);
  const Corpus corpus =
      read_parallel({.path = (folder_ / "pairs.tsv").string(), .source = "", .target = ""});
  std::set<std::string> train;
  for (const Pair& pair : corpus.train) train.insert(pair.source);
  for (const Pair& pair : corpus.test) EXPECT_FALSE(train.contains(pair.source));
  EXPECT_EQ(corpus.train.size() + corpus.validation.size() + corpus.test.size(), 600u);
}

}  // namespace
}  // namespace fovea::translate
