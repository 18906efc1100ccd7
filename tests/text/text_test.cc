// Tokens, corpora, generators and files of word vectors.
#include "text/tokens.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "data/formats/text.h"
#include "fovea/error.h"
#include "text/compose.h"
#include "text/corpus.h"
#include "text/generate.h"
#include "text/vectors.h"

namespace fovea::text {
namespace {

// ---- tokens -------------------------------------------------------------------------------------

TEST(Tokens, WordsPartFromTheirPunctuation) {
  const auto words = tokeniser_named("words");
  EXPECT_EQ(words->split("It's great, isn't it?"),
            (Words{"it", "'s", "great", ",", "is", "n't", "it", "?"}));
  EXPECT_EQ(words->split("A 3.5-star film--almost...<br />Größe"),
            (Words{"a", "3.5-star", "film", "--", "almost", "...", "größe"}));
  EXPECT_EQ(words->split("(\"quoted\")"), (Words{"(", "\"", "quoted", "\"", ")"}));
}

TEST(Tokens, ScriptsWithoutBlanksArePartedToo) {
  const auto words = tokeniser_named("words");
  EXPECT_EQ(words->split("发票，为什么?"), (Words{"发", "票", "，", "为", "什", "么", "?"}));
  EXPECT_EQ(words->split("密码abc登录。"), (Words{"密", "码", "abc", "登", "录", "。"}));
  EXPECT_EQ(words->split("كيف حالك؟ جيد"), (Words{"كيف", "حالك", "؟", "جيد"}));
  EXPECT_EQ(words->split("Größe 👍🏽 \xA0\xFF"), (Words{"größe", "👍🏽", "\xA0\xFF"}));
  EXPECT_EQ(sentences(*words, "今天。明天！", 60),
            (std::vector<Words>{{"今", "天", "。"}, {"明", "天", "！"}}));
}

TEST(Tokens, TokenisedTextStaysAsItIs) {
  const std::string line =
      "it 's so laddish and juvenile , only teenage boys could n't find it funny .";
  EXPECT_EQ(tokeniser_named("words")->split(line), data::words(line));
  EXPECT_EQ(tokeniser_named("spaces")->split("It's  Fine"), (Words{"It's", "Fine"}));
  EXPECT_TRUE(tokeniser_named("words")->split("").empty());
  EXPECT_THROW(tokeniser_named("syllables"), InvalidArgument);
}

TEST(Tokens, SentencesEndAtMarksAndBreaks) {
  const auto words = tokeniser_named("words");
  const auto parts =
      sentences(*words, "Mr. Smith came. \"Who?\" he said!<br /><br />No end here", 60);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0], (Words{"mr", ".", "smith", "came", "."}));
  EXPECT_EQ(parts[1], (Words{"\"", "who", "?", "\"", "he", "said", "!"}));
  EXPECT_EQ(parts[2], (Words{"no", "end", "here"}));
  EXPECT_TRUE(sentences(*words, "  <br /> ", 60).empty());
  EXPECT_EQ(sentences(*words, "a b c d e f g", 3).size(), 3u);
}

TEST(Tokens, PiecesOfAModelLearnedHere) {
  const std::vector<std::string> lines(50, "the cat sat on the mat and the dog saw the cat");
  const auto pieces = learn_piece_tokeniser(lines, 40);
  EXPECT_FALSE(pieces->split("the cats").empty());
  EXPECT_EQ(piece_tokeniser(pieces->bytes(), "again")->split("the dog"), pieces->split("the dog"));
  EXPECT_THROW(piece_tokeniser("no model", "bad.model"), InvalidArgument);
}

// ---- corpora ------------------------------------------------------------------------------------

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("fovea_text_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  static Corpus read(const std::string& path, Columns columns = Columns::kAuto, Source source = {},
                     double above = std::nan("")) {
    source.path = path;
    return read_corpus({.source = source, .columns = columns, .positive_above = above});
  }
  static std::string error_of(const std::string& path, Columns columns = Columns::kAuto,
                              double above = std::nan("")) {
    try {
      read(path, columns, {}, above);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  }
  std::filesystem::path folder_;
};

TEST_F(Files, EveryFormatIsToldFromItsFirstLine) {
  EXPECT_EQ(read(write("a", "0 bad film\n1 good film\n")).documents[1].texts[0], "good film");
  EXPECT_EQ(read(write("b", "neg\tbad film\npos\t\n")).documents[1].texts[0], "");
  EXPECT_EQ(read(write("c", "1\tid7\tone .\ttwo .\n0\tid8\tthree .\n")).documents[0].texts,
            (std::vector<std::string>{"one .", "two ."}));
  const Corpus json = read(write("d",
                                 "{\"label\": 3, \"text\": \"x\"}\n{\"label\": \"b\", \"text\": "
                                 "[\"y\", \"z\"], \"aspect\": \"food\"}\n"));
  EXPECT_EQ(json.documents[0].label, "3");
  EXPECT_EQ(json.documents[1].texts.size(), 2u);
  EXPECT_EQ(json.documents[1].aspect, "food");
  EXPECT_EQ(read(write("e", "1\tfood\tit was fine\n0\tbar\tno\n"), Columns::kLabelAspectText)
                .documents[0]
                .aspect,
            "food");
}

TEST_F(Files, TablesWithAndWithoutAHeader) {
  const auto read = [&](const std::string& name, const std::string& text) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const Document& document :
         read_documents(write(name, text), {.positive_above = std::nan("")}))
      out.emplace_back(document.label, document.texts.at(0));
    return out;
  };
  using Rows = std::vector<std::pair<std::string, std::string>>;
  const Rows two = {{"billing", "my invoice, again"}, {"login", "no \"access\""}};
  const std::string quoted = "billing,\"my invoice, again\"\nlogin,\"no \"\"access\"\"\"\n";
  EXPECT_EQ(read("a.csv", "label,text\n" + quoted), two);
  EXPECT_EQ(read("b.csv", quoted), two);
  EXPECT_EQ(read("c.txt", quoted), two);  // a comma before the first blank of every line
  EXPECT_EQ(read("d.csv",
                 "\"Text\",\"Category\"\r\n\"my invoice, again\",billing\r\n"
                 "\"no \"\"access\"\"\",login\r\n"),
            two);
  // Of two names that of the text is known, and no row has one of them.
  EXPECT_EQ(read("l.csv",
                 "\xEF\xBB\xBFKlasse;Text;;\r\nbilling;\"my invoice, again\";;\r\n"
                 "login;no \"access\";;\r\n;;;\r\n"),
            two);
  EXPECT_EQ(
      read("m.csv", "message,Thema\n\"my invoice, again\",billing\n\"no \"\"access\"\"\",login\n"),
      two);
  EXPECT_EQ(read("n.csv", "good,review\ngood,fine\n"),
            (Rows{{"good", "review"}, {"good", "fine"}}));
  const Rows plain = {{"good", "fine day"}, {"bad", "wet, cold"}};
  EXPECT_EQ(read("e.tsv", "label\ttext\ngood\tfine day\nbad\twet, cold\n"), plain);
  EXPECT_EQ(read("f.tsv", "good\tfine day\nbad\twet, cold\n"), plain);
  EXPECT_EQ(read("g.txt", "good fine day\nbad wet, cold\n"), plain);
  EXPECT_EQ(read("h.txt", "good\rbad\r"), (Rows{{"good", ""}, {"bad", ""}}));
  const auto said = [&](const std::string& name, const std::string& text) -> std::string {
    try {
      read(name, text);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_NE(said("i.csv", "label,text\na,b,c\nd\n").find("i.csv:3: 1 field, expected those of"),
            std::string::npos);
  EXPECT_NE(said("j.csv", "good,one, two\n").find("a text with commas stands in quotes"),
            std::string::npos);
  EXPECT_NE(
      said("l.csv", "ticket,day,message,team\n1,2,my bill,billing\n")
          .find("l.csv:1: 4 columns, of which none is called label (or class, category, topic, "
                "…): expected label,text, or a first line that names both, found 'ticket, "
                "day, message, team'"),
      std::string::npos);
  EXPECT_NE(said("k.csv", "label,text\n").find("a header and no lines"), std::string::npos);
}

TEST_F(Files, WhatMayNotBeMeantIsSaid) {
  const auto words = [&](const std::string& text) { return in_words(read(write("a.tsv", text))); };
  const std::string both = "a\tx\nb\ty\na\tz\nb\tw\n";
  EXPECT_EQ(words(both), "4 lines, 2 classes: 'a' 2, 'b' 2");
  EXPECT_EQ(words(both + "b\ty\n"),
            "5 lines, 2 classes: 'a' 2, 'b' 3; 1 repeats the text of an earlier line");
  EXPECT_EQ(words(both + "a\ty\nb\ty\n"),
            "6 lines, 2 classes: 'a' 3, 'b' 3; 2 repeat the text of an earlier line, 1 of them "
            "with another class");
  EXPECT_EQ(words(both + "Sum\t4\n"),
            "5 lines, 3 classes: 'Sum' 1, 'a' 2, 'b' 2; on one line only: 'Sum'");
  EXPECT_EQ(words(both + "A\tv\nA\tu\n"),
            "6 lines, 3 classes: 'A' 2, 'a' 2, 'b' 2; 'A' and 'a' are two classes");
}

TEST_F(Files, BlankLinesSayNothing) {
  const auto read = [&](const std::string& name, const std::string& text) {
    std::vector<std::pair<std::string, size_t>> out;
    for (const Document& document :
         read_documents(write(name, text), {.positive_above = std::nan("")}))
      out.emplace_back(document.label, document.line);
    return out;
  };
  using Labels = std::vector<std::pair<std::string, size_t>>;
  EXPECT_EQ(read("a.tsv", "\xEF\xBB\xBFtopic\tmessage\r\ngood\tday\r\n\r\nbad\tnight\r\n\r\n"),
            (Labels{{"good", 2}, {"bad", 4}}));
  EXPECT_EQ(read("b.tsv", "\n \nlabel\ttext\ngood\tday\n"), (Labels{{"good", 4}}));
  EXPECT_EQ(read("c.txt", "1 day\n\n0 night\n  \n"), (Labels{{"1", 1}, {"0", 3}}));
  EXPECT_EQ(read("d.jsonl", "\n{\"label\": 1, \"text\": \"day\"}\n\n"), (Labels{{"1", 2}}));
  EXPECT_EQ(read("e.csv", "good,day\n\nbad,night\n\n"), (Labels{{"good", 1}, {"bad", 3}}));
}

TEST_F(Files, ThreeColumnsAreWhatTheSystemReads) {
  const std::string file = write("a", "1\tfood\tit was fine\n0\tbar\tno\n");
  EXPECT_EQ(read(file).documents[0].id, "food");
  const auto asked = [](const std::string& path) {
    return read_corpus({.source = {.path = path},
                        .of_three = Columns::kLabelAspectText,
                        .positive_above = std::nan("")});
  };
  EXPECT_EQ(asked(file).documents[0].aspect, "food");
  EXPECT_EQ(asked(write("b", "1\tit was fine\n0\tno\n")).documents[0].texts[0], "it was fine");
  EXPECT_THROW(asked(write("c", "1\tfood\tit was\tfine\n")), InvalidArgument);
}

TEST_F(Files, StarsBecomePolarities) {
  const Corpus stars = read(write("s", "3\t0\tbad\n9\t1\tgood\n"), Columns::kAuto, {}, 5);
  EXPECT_EQ(stars.documents[0].label, "negative");
  EXPECT_EQ(stars.documents[1].label, "positive");
  EXPECT_NE(error_of(write("t", "x\t0\tbad\n"), Columns::kAuto, 5).find("t:1:"), std::string::npos);
}

TEST_F(Files, MistakesNameTheirLine) {
  EXPECT_NE(error_of(write("a", "0\tone\n1\ttwo\tthree\n")).find("a:2: 3 columns, expected 2"),
            std::string::npos);
  EXPECT_NE(error_of(write("b", "0\tid\tone\n1\tid\n")).find("b:2: 2 columns, expected at least 3"),
            std::string::npos);
  EXPECT_NE(error_of(write("c", "{\"label\": 1, \"text\": \"x\"}\nno json\n")).find("c:2:"),
            std::string::npos);
  EXPECT_NE(error_of(write("d", "0 fine\n x\n")).find("d:2: expected a label"), std::string::npos);
  EXPECT_FALSE(error_of((folder_ / "absent").string()).empty());
  EXPECT_NE(error_of(write("e", "0\tone\n1\n")).find("e:2: 1 column, expected 2"),
            std::string::npos);
}

TEST_F(Files, PartsOfAFolderAndOfAStem) {
  write("x.train.gz", "0 a\n1 b\n0 c\n1 d\n");
  write("x.dev.gz", "0 e\n");
  write("x.test.gz", "1 f\n1 g\n");
  const Corpus stem = read((folder_ / "x").string());
  EXPECT_EQ(stem.splits.train.size(), 4u);
  EXPECT_EQ(stem.splits.validation.size(), 1u);
  EXPECT_EQ(stem.documents[static_cast<size_t>(stem.splits.test[1])].texts[0], "g");
  EXPECT_THROW(read((folder_ / "x").string(), Columns::kAuto, {.folds = 10}), InvalidArgument);
}

TEST_F(Files, WhatIsSetAsideForValidationFollowsTheTextsNotTheirOrder) {
  std::vector<std::string> lines;
  for (int i = 0; i < 100; ++i)
    lines.push_back(std::to_string(i % 2) + " text " + std::to_string(i) + "\n");
  const auto chosen = [&](const std::string& name) {
    std::string text;
    for (const std::string& line : lines) text += line;
    write(name + ".train.txt", text);
    write(name + ".test.txt", "0 never\n1 seen\n");
    const Corpus corpus = read((folder_ / name).string());
    std::set<std::string> texts;
    for (const int64_t i : corpus.splits.validation)
      texts.insert(corpus.documents[static_cast<size_t>(i)].texts[0]);
    return texts;
  };
  const std::set<std::string> before = chosen("before");
  EXPECT_EQ(before.size(), 10u);
  std::reverse(lines.begin(), lines.end());
  EXPECT_EQ(chosen("after"), before);
}

TEST_F(Files, EqualTextsStayOnOneSideAndPublishedFoldsAreKept) {
  std::string twice, ids;
  for (int i = 0; i < 400; ++i)
    twice += std::to_string(i % 2) + " text " + std::to_string(i / 4) + "\n";
  const Corpus corpus = read(write("twice", twice));
  std::set<std::string> train;
  for (const int64_t i : corpus.splits.train)
    train.insert(corpus.documents[static_cast<size_t>(i)].texts[0]);
  for (const int64_t i : corpus.splits.test)
    EXPECT_FALSE(train.contains(corpus.documents[static_cast<size_t>(i)].texts[0]));
  for (int i = 0; i < 100; ++i)
    ids += std::to_string(i % 2) + "\tcv" + std::to_string(i / 10) + "0" + std::to_string(i % 10) +
           "_1\tt" + std::to_string(i) + "\n";
  const Corpus folds = read(write("ids", ids), Columns::kAuto, {.fold = 3, .folds = 10});
  ASSERT_EQ(folds.splits.test.size(), 10u);
  for (const int64_t i : folds.splits.test)
    EXPECT_TRUE(folds.documents[static_cast<size_t>(i)].id.starts_with("cv3"));
}

// ---- generators ---------------------------------------------------------------------------------

TEST_F(Files, TrueWordsAreReadBackAndPlacesThatAreNoneAreRefused) {
  const Corpus corpus = read(write("truth", R"({"label": "a", "text": "x y", "true_words": [1]}
{"label": "b", "text": "z"})"));
  EXPECT_EQ(corpus.documents[0].truth_words, std::vector<int32_t>{1});
  for (const char* places : {"[-1]", "[5000000000]", "[0.5]", "3", "[\"x\"]"})
    EXPECT_NE(error_of(write("bad", R"({"label": "a", "text": "x", "true_words": )" +
                                        std::string(places) + "}\n"))
                  .find("places from 0"),
              std::string::npos)
        << places;
}

TEST_F(Files, HiddenSentencesAreComposedOfTheirOwnSplit) {
  std::string polar, facts;
  for (int i = 0; i < 40; ++i) {
    polar += std::to_string(i % 2) + " polar " + std::to_string(i) + "\n";
    facts += std::to_string(i % 2) + " fact " + std::to_string(i) + "\n";
  }
  write("rt-polarity.all", polar);
  write("subj.all", facts);
  const Corpus corpus = compose_hidden(folder_.string(), 1, 60);
  EXPECT_EQ(corpus.splits.train.size(), 60u);
  EXPECT_EQ(corpus.splits.validation.size(), 500u);
  EXPECT_EQ(corpus.splits.test.size(), 1000u);
  std::map<std::string, data::Split> home;  // no sentence is in two splits
  for (const auto split : {data::Split::kTrain, data::Split::kValidation, data::Split::kTest})
    for (const int64_t item : corpus.splits.of(split)) {
      const Document& document = corpus.documents[static_cast<size_t>(item)];
      for (const std::string& text : document.texts)
        EXPECT_EQ(home.emplace(text, split).first->second, split) << text;
      for (const int32_t place : document.truth_sentences)
        EXPECT_TRUE(document.texts[static_cast<size_t>(place)].starts_with("polar"));
    }
}

TEST(Generate, NegationLeavesWhatItClaimsToWhoCountsWords) {
  const Corpus corpus = generate_negation(3);
  ASSERT_EQ(corpus.splits.train.size(), 4000u);
  ASSERT_EQ(corpus.splits.test.size(), 1000u);
  EXPECT_EQ(generate_negation(3).documents[17].texts, corpus.documents[17].texts);
  double negations[3] = {};
  for (const Document& d : corpus.documents) {
    const auto words = data::words(d.texts[0]);
    ++negations[std::count(words.begin(), words.end(), "not")];
  }
  EXPECT_NEAR(negations[0] / 5500, 0.4, 0.02);
  EXPECT_NEAR(negations[1] / 5500, 0.4, 0.02);
  EXPECT_NEAR(negations[2] / 5500, 0.2, 0.02);
}

TEST(Generate, TheClauseAskedAboutDecides) {
  for (const Document& d : generate_aspects(1).documents) {
    const auto words = data::words(d.texts[0]);
    ASSERT_EQ(words.size(), 9u);
    EXPECT_EQ(words[static_cast<size_t>(d.truth_words[1])], d.aspect);
  }
}

TEST(Generate, HiddenSentencesAreOneToThree) {
  for (const Document& d : generate_hidden(1).documents) {
    EXPECT_GE(d.truth_sentences.size(), 1u);
    EXPECT_LE(d.truth_sentences.size(), 3u);
    EXPECT_GE(d.texts.size() - d.truth_sentences.size(), 5u);
    EXPECT_LE(d.texts.size() - d.truth_sentences.size(), 9u);
    for (const int32_t s : d.truth_sentences)
      EXPECT_NE(d.texts[static_cast<size_t>(s)].find(" was "), std::string::npos);
  }
}

// ---- word vectors -------------------------------------------------------------------------------

const Vectors kVectors{.width = 3,
                       .words = {"the", "größe", "42"},
                       .values = {0.1f, -2.5f, 0, 1e-7f, 3, 1.0f / 3, -0.0f, 7, 1e20f}};

TEST(Vectors, EveryFormatGivesBackEveryBit) {
  for (const char* name : {"glove", "word2vec", "binary"}) {
    const Vectors again = parse_vectors(vector_bytes(kVectors, kVectorFormats.of(name)), name);
    EXPECT_EQ(again.words, kVectors.words) << name;
    EXPECT_EQ(again.values, kVectors.values) << name;
    EXPECT_EQ(again.width, 3) << name;
  }
  EXPECT_THROW(kVectorFormats.of("hdf5"), InvalidArgument);
}

TEST(Vectors, BinaryRowsMayEndWithALineEnd) {
  std::string bytes = vector_bytes(kVectors, VectorFormat::kWord2vecBinary);
  Vectors no_ends = kVectors;
  std::string without = "3 3\n";
  for (size_t i = 0; i < 3; ++i)
    without +=
        no_ends.words[i] + " " + std::string(reinterpret_cast<const char*>(no_ends.of(i)), 12);
  EXPECT_EQ(parse_vectors(without, "a").values, parse_vectors(bytes, "b").values);
}

TEST(Vectors, WordsThatAreNotUtf8AreLeftOutAndCounted) {
  const Vectors some = parse_vectors("the 1 2\n\x96 3 4\nof 5 6\n", "x");
  EXPECT_EQ(some.words, (std::vector<std::string>{"the", "of"}));
  EXPECT_EQ(some.values, (std::vector<float>{1, 2, 5, 6}));
  EXPECT_EQ(some.not_utf8, 1);
}

TEST(Vectors, RefusesWhatIsNone) {
  EXPECT_THROW(parse_vectors("the 1 2 3\na 1 2\n", "x"), InvalidArgument);
  EXPECT_THROW(parse_vectors("the 1 2\nthe 1 2\n", "x"), InvalidArgument);
  EXPECT_THROW(parse_vectors("the 1 nan\n", "x"), InvalidArgument);
  EXPECT_THROW(parse_vectors("the one two\n", "x"), InvalidArgument);
  EXPECT_THROW(parse_vectors("5 2\nthe 1 2\n", "x"), InvalidArgument);
  EXPECT_THROW(parse_vectors("2 900000000\nthe 1 2\n", "x"), InvalidArgument);
  const std::string bytes = vector_bytes(kVectors, VectorFormat::kWord2vecBinary);
  EXPECT_THROW(parse_vectors(std::string_view(bytes).substr(0, bytes.size() - 5), "cut"),
               InvalidArgument);
}

}  // namespace
}  // namespace fovea::text
