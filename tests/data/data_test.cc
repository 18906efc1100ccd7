// Loaders on good files, splits, batches, vocabularies, draws.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "data/batches.h"
#include "data/digits.h"
#include "data/files/file.h"
#include "data/formats/bags.h"
#include "data/formats/csv.h"
#include "data/formats/graph.h"
#include "data/formats/regression.h"
#include "data/formats/text.h"
#include "data/formats/vocabulary.h"
#include "data/nearest.h"
#include "data/pictures/idx.h"
#include "data/random.h"
#include "data/split.h"
#include "metrics/classification.h"
#include "tests/data/files.h"

namespace fovea::data {
namespace {

using Strings = std::vector<std::string>;

TEST_F(Files, GzipIsReadLikePlainText) {
  const std::string text = "a,b\n1,2\n";
  EXPECT_EQ(read_file(write("plain", text)), text);
  EXPECT_EQ(read_file(write("packed", gzip(text))), text);
  EXPECT_EQ(read_file(write("two_members", gzip("a,b\n") + gzip("1,2\n"))), text);
}

TEST_F(Files, CsvKeepsQuotedCommasAndLines) {
  const Table table =
      read_csv(write("t.csv", "name,\"x, y\",z\r\n\"a \"\"b\"\"\",1,2\r\n\n\"line\nbreak\",3,4"));
  EXPECT_EQ(table.header, (Strings{"name", "x, y", "z"}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][0], "a \"b\"");
  EXPECT_EQ(table.rows[1][0], "line\nbreak");
  EXPECT_EQ(table.lines, (std::vector<size_t>{2, 4}));
  EXPECT_TRUE(table.numeric(1));
  EXPECT_FALSE(table.numeric(0));
}

TEST_F(Files, SemicolonsAndTabsSeparateColumnsWhereTheFirstLineHasNoComma) {
  const Regression german = regression(
      read_csv(
          write("de.csv", "\xEF\xBB\xBFOrt;\"Größe, cm\";Preis\r\nUlm;1,5;-2,25\r\nKöln;;3\r\n")),
      {.missing = Missing::kMean});
  EXPECT_EQ(german.inputs, (Strings{"Größe, cm"}));
  EXPECT_EQ(german.x, (std::vector<double>{1.5, 1.5}));
  EXPECT_EQ(german.y, (std::vector<double>{-2.25, 3}));
  EXPECT_TRUE(in_words(german).ends_with("; columns separated by semicolons, decimal commas"));
  EXPECT_EQ(read_csv(write("u.tsv", "a\ty\n1\t2,5\n")).rows[0], (Strings{"1", "2,5"}));
  // A comma in the first line makes it comma-separated, whatever else it has.
  EXPECT_EQ(read_csv(write("c.csv", "a;b,y\n1;2,3\n")).header, (Strings{"a;b", "y"}));
  // But a name may have one, where semicolons divide every line alike.
  EXPECT_EQ(read_csv(write("n.csv", "Tag;Wind, m/s;y\n1.5.;2,5;3\n2.5.;1,5;4,5\n")).header,
            (Strings{"Tag", "Wind, m/s", "y"}));
  EXPECT_EQ(read_csv(write("o.csv", "Tag;Wind, m/s\n1;2,5\n2;1,5\n")).rows[0],
            (Strings{"1", "2.5"}));
  EXPECT_EQ(read_csv(write("b.csv", "a, b;y\n1, 2\n")).header, (Strings{"a", " b;y"}));
  // Words keep their commas.
  EXPECT_EQ(read_csv(write("w.csv", "a;y\n1,2;3\nx,y;4\n")).rows[0][0], "1,2");
}

TEST_F(Files, SemicolonsAndTabsSeparateColumnsWhereCommasAreWordsOwn) {
  const Table table = read_csv(write("net.csv", "size;price, net\n1,5;2,25\n3;4,5\n"));
  EXPECT_EQ(table.header, (Strings{"size", "price, net"}));
  EXPECT_EQ(table.rows[0], (Strings{"1.5", "2.25"}));
  EXPECT_EQ(read_csv(write("t.tsv", "a\tb, c\n1\t2\n")).header, (Strings{"a", "b, c"}));
  EXPECT_EQ(read_csv(write("c.csv", "a,b;c\n1,2\n")).header, (Strings{"a", "b;c"}));
  EXPECT_EQ(read_csv(write("one.csv", "a;\n1,5;\n")).rows[0], (Strings{"1.5"}));
}

TEST_F(Files, LinesAndColumnsWithoutAnyEntryAreLeftOut) {
  const Table table =
      read_csv(write("excel.csv", "size;weight;;\r\n170;60,5;;\r\n;;;\r\n180;70;;\r\n;;;\r\n"));
  EXPECT_EQ(table.header, (Strings{"size", "weight"}));
  EXPECT_EQ(table.rows, (std::vector<Strings>{{"170", "60.5"}, {"180", "70"}}));
  EXPECT_EQ(table.lines, (std::vector<size_t>{2, 4}));
  // A column without a name that has entries stays; so does one with a name and none.
  EXPECT_EQ(read_csv(write("a.csv", ",a,b\n0,1,\n1,2,\n")).header, (Strings{"", "a", "b"}));
  EXPECT_THROW(read_csv(write("n.csv", "1;2;;\n3;4;;\n")), FileError) << "numbers are no names";
  const std::vector<Record> records = csv_records("a,b,,\n\"c\",,,\n,,,\n", "r.csv");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].fields, (Strings{"a", "b"}));
  EXPECT_EQ(records[1].fields, (Strings{"c", ""}));
}

TEST_F(Files, RegressionColumnsDefaultToTheLastAndTheNumericOthers) {
  const std::string path = write("r.csv", "rownames,kind,a,b,y\n1,u,1,10,100\n2,v,2,20,200\n");
  const Regression table = regression(read_csv(path), {});
  EXPECT_EQ(table.inputs, (Strings{"a", "b"}));  // row numbers and words are no inputs
  EXPECT_EQ(table.target, "y");
  EXPECT_EQ(table.x, (std::vector<double>{1, 10, 2, 20}));
  const Regression chosen = regression(read_csv(path), {.x = {"b"}, .y = "a"});
  EXPECT_EQ(chosen.x, (std::vector<double>{10, 20}));
  EXPECT_EQ(chosen.left_out, Strings{"kind"}) << "a run that is opened again says what it read";
  EXPECT_EQ(chosen.y, (std::vector<double>{1, 2}));
}

TEST_F(Files, AFirstColumnThatCountsTheRowsIsLeftOutAndSaid) {
  const auto words = [&](const std::string& text) {
    return in_words(regression(read_csv(write("n.csv", text)), {}));
  };
  EXPECT_EQ(words("No.,a,y\n1,5,2\n2,6,3\n"), "2 rows: y from a; column No. left out: row numbers");
  EXPECT_EQ(
      words(",a,day,y\n0,5,Mo,2\n1,6,Tu,3\n"),
      "2 rows: y from a; the first column, which has no name, left out: row numbers; column day "
      "left out: not a number");
  EXPECT_EQ(words("id,a,y\n1,5,2\n7,6,3\n"), "2 rows: y from id, a") << "these count no rows";
  EXPECT_EQ(words("year,a,y\n1,5,2\n2,6,3\n"), "2 rows: y from year, a") << "its name says more";
  EXPECT_EQ(words("index,y\n0,2\n1,3\n"), "2 rows: y from index") << "there is no other";
  EXPECT_EQ(words("a,y\n5,2\n5,3\n5,2\n5,2\n"), "4 rows: y from a; 2 repeat an earlier row");
}

TEST_F(
    Files,
    AColumnOfWordsIsNoInput) {  // not even of words spelt with the letters of "infinity" and "nan"
  EXPECT_EQ(regression(read_csv(write("w.csv", "a,b,c,y\nfit,1,N,2\ntiny,+3,F, 4\n")), {}).inputs,
            (std::vector<std::string>{"b"}));
}

TEST_F(Files, IntegersMayNameColumns) {
  EXPECT_EQ(regression(read_csv(write("frame.csv", "0,1\n5,6\n")), {}).target, "1");
  EXPECT_EQ(regression(read_csv(write("years.csv", "city,1990,1991\na,5,6\n")), {}).inputs,
            (std::vector<std::string>{"1990"}));
}

TEST_F(Files, MissingCellsAreDroppedOrFilled) {
  const std::string path = write("m.csv", "a,y\n1,1\n,2\n2,3\n6,4\n");
  EXPECT_EQ(regression(read_csv(path), {.missing = Missing::kDrop}).x,
            (std::vector<double>{1, 2, 6}));
  EXPECT_EQ(regression(read_csv(write("n.csv", "a,y\n1,1\nNaN,2\n2,nan\n6,4\n")),
                       {.missing = Missing::kDrop})
                .x,
            (std::vector<double>{1, 6}));
  EXPECT_EQ(regression(read_csv(path), {.missing = Missing::kMedian}).x,
            (std::vector<double>{1, 2, 2, 6}));
  EXPECT_EQ(regression(read_csv(path), {.missing = Missing::kMean}).x,
            (std::vector<double>{1, 3, 2, 6}));
}

TEST_F(Files, LabelledTextComesInThreeFormats) {
  const LabelledText space = read_labelled_text(write("a", "1 good film\n0 bad\n0\n"));
  EXPECT_EQ(space.labels, (Strings{"1", "0", "0"}));
  EXPECT_EQ(space.texts, (Strings{"good film", "bad", ""}));
  const LabelledText tab = read_labelled_text(write("b", "very good\tgood film\nbad\tno\n"));
  EXPECT_EQ(tab.labels, (Strings{"very good", "bad"}));
  const LabelledText json = read_labelled_text(
      write("c", "{\"label\": 3, \"text\": \"a b\"}\n{\"text\": \"c\", \"label\": \"x\"}\n"));
  EXPECT_EQ(json.labels, (Strings{"3", "x"}));
  EXPECT_EQ(json.texts, (Strings{"a b", "c"}));
  const Classes classes = classes_of({"10", "9", "10"});
  EXPECT_EQ(classes.names, (Strings{"9", "10"}));  // numbers by value
  EXPECT_EQ(classes.of, (std::vector<int64_t>{1, 0, 1}));
}

TEST(Text, WordsAreBetweenWhiteSpace) {
  EXPECT_EQ(words("  a\tbc\xC2\xA0"
                  "d \n"),
            (Strings{"a", "bc", "d"}));
  EXPECT_TRUE(words("").empty());
  EXPECT_EQ(lower_ascii("ÄBc"), "Äbc");
}

TEST(Vocabularies, StartWithTheFourSpecialWords) {
  const Vocabulary v = Vocabulary::of({{"b", "a", "b"}, {"c", "a", "b"}}, {});
  EXPECT_EQ(v.ids({"b", "a", "c", "zzz"}), (std::vector<int64_t>{4, 5, 6, kUnk}));
  EXPECT_EQ(v.word(0), "<pad>");
  EXPECT_EQ(v.word(kEos), "</s>");
  EXPECT_EQ(Vocabulary::parse(v.text(), "v").text(), v.text());
  EXPECT_EQ(Vocabulary::of({{"b", "a", "b"}}, {.least_count = 2}).size(), 5);
  EXPECT_EQ(Vocabulary::of({{"b", "a", "b"}}, {.most_words = 1}).size(), 5);
}

TEST(Vocabularies, WhatHasNoLineOfItsOwnIsUnknown) {
  const std::vector<std::string> none = {"",    "\r", "a\r", "a\rb", "\n", std::string(1, '\0'),
                                         "\xff"};
  std::vector<std::string> all = none;
  all.insert(all.end(), {"\t", "\x0b", "\xC2\x85", "a b"});
  const Vocabulary v = Vocabulary::of({all}, {});
  EXPECT_EQ(v.size(), 8);
  for (const std::string& text : none) EXPECT_EQ(v.id(text), kUnk);
  EXPECT_EQ(Vocabulary::parse(v.text(), "v").text(), v.text());
}

TEST(Vocabularies, MayComeFromAnotherSystem) {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    const std::string text =
        "<pad>" + end + "<unk>" + end + "<s>" + end + "</s>" + end + "the" + end;
    EXPECT_EQ(Vocabulary::parse(text, "v").text(), "<pad>\n<unk>\n<s>\n</s>\nthe\n");
  }
}

TEST_F(Files, IdxIsReadAndWritten) {
  Idx idx{{2, 1, 3}, {1, 2, 3, 4, 5, 6}};
  const Idx back = read_idx(write("i", gzip(idx_bytes(idx))));
  EXPECT_EQ(back.shape, idx.shape);
  EXPECT_EQ(back.values, idx.values);
}

TEST_F(Files, BagsMayBeInterleaved) {
  Bags bags = read_bags(write("bags.csv", "bag,label,f0,f1\nm,1,1,2\nk,0,3,4\nm,1,5,6\n"));
  EXPECT_EQ(bags.names, (Strings{"m", "k"}));
  EXPECT_EQ(bags.labels, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(bags.features[0], (std::vector<float>{1, 2, 5, 6}));
  const Bags other = read_bags(write("other.csv", "f0,label,bag,f1\n1,1,m,2\n3,0,k,4\n5,1,m,6\n"));
  EXPECT_EQ(other.columns, (Strings{"f0", "f1"}));
  EXPECT_EQ(other.labels, bags.labels);
  EXPECT_EQ(other.features, bags.features);
  apply(scaling_of(bags, {0}), bags);
  EXPECT_EQ(bags.features[0], (std::vector<float>{-1, -1, 1, 1}));
}

TEST_F(Files, AColumnOfWordsIsNoFeatureOfABag) {
  const Bags bags = read_bags(
      write("bags.csv", "bag,label,colour,f0,f1\nm,1,red,1,2\nk,0,?,3,4\nm,1,green,5,6\n"));
  EXPECT_EQ(bags.columns, (Strings{"f0", "f1"}));
  EXPECT_EQ(bags.features[0], (std::vector<float>{1, 2, 5, 6}));
  const Bags said = read_bags(write("said.csv", "f0,label,bag\n1,yes,m\n2,No,k\n3,yes,m\n"));
  EXPECT_EQ(said.labels, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(said.features[0], (std::vector<float>{1, 3}));
  EXPECT_EQ(
      in_words(bags),
      "2 bags of 3 instances, 2 features; label 1: 1, label 0: 1; column colour left out: not "
      "a number");
  Bags asked = parse_unlabelled_bags("bag,f1,colour,f0\nm,2,red,1\n", "in");
  arrange(asked, {.width = 2, .names = bags.columns}, "in");
  EXPECT_EQ(asked.features[0], (std::vector<float>{1, 2}));
  const auto refusal = [&](auto read) -> std::string {
    try {
      read();
    } catch (const FileError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal([&] {
              Bags words = parse_unlabelled_bags("bag,f0,f1\nm,n/a,2\n", "in");
              arrange(words, {.width = 2, .names = {"f0", "f1"}}, "in");
            }).find("column 'f0': expected numbers, as in training"),
            std::string::npos);
  // One mistake in a column of numbers is one.
  EXPECT_NE(refusal([&] {
              read_bags(write("b", "bag,label,f\na,0,1\na,0,2\na,0,x3\n"));
            }).find("b:4: column 'f': expected a finite number, found 'x3'"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              read_bags(write("w", "bag,label,f\na,0,red\n"));
            }).find("w:1: expected a column of numbers beside bag and label"),
            std::string::npos);
}

TEST_F(Files, ANumberBeyondFloatIsRefusedByItsLine) {
  const std::string path = write("bags.csv", "bag,label,f0\na,0,3e38\na,0,1e39\n");
  try {
    read_bags(path);
    FAIL() << "1e39 was taken";
  } catch (const FileError& error) {
    EXPECT_EQ(std::string(error.what()),
              path + ":3: column 'f0': expected a number of at most 3.4e38, found '1e39'");
  }
}

TEST_F(Files, AFeatureThatNeverChangesIsScaledToNothing) {
  // 0.1f has no short binary fraction: the sum of its squares, less the square of its mean, is not
  // zero.
  std::string text = "bag,label,f0,f1\n";
  for (int i = 0; i < 100; ++i) text += "a,0,0.1," + std::to_string(i) + "\n";
  Bags bags = read_bags(write("bags.csv", text + "b,1,0.2,0\n"));
  const Scaling scaling = scaling_of(bags, {0});
  EXPECT_EQ(scaling.deviation[0], 0);
  EXPECT_NEAR(scaling.deviation[1], 28.866, 1e-3);
  apply(scaling, bags);
  EXPECT_EQ(bags.features[1][0], 0);
}

TEST(Features, PlacesAreThoseOfTheNames) {
  const Features learnt{.width = 3, .names = {"a", "b", "c"}};
  std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  reorder(rows, places_of(learnt, {"c", "a", "b"}, "in"));
  EXPECT_EQ(rows, (std::vector<float>{2, 3, 1, 5, 6, 4}));
  EXPECT_TRUE(places_of(learnt, {"a", "b", "c"}, "in").empty());
  EXPECT_TRUE(places_of(learnt, {}, "in").empty());
  EXPECT_THROW(places_of(learnt, {"a", "b"}, "in"), FileError);
}

TEST_F(Files, BagsAreArrangedByTheNamesOfTheirColumns) {
  const Features learnt{.width = 2, .names = {"f0", "f1"}};
  Bags swapped = parse_unlabelled_bags("bag,f1,label,f0\nm,2,7,1\nm,6,7,5\n", "in");
  arrange(swapped, learnt, "in");
  EXPECT_EQ(swapped.features[0], (std::vector<float>{1, 2, 5, 6}));
  const auto refusal = [&](const std::string& text) -> std::string {
    Bags bags = parse_unlabelled_bags(text, "in");
    try {
      arrange(bags, learnt, "in");
    } catch (const FileError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("bag,a,f1\nm,1,2\n"), "in:1: no column 'f0', a feature in training");
  EXPECT_EQ(refusal("bag,f0\nm,1\n"), "in:1: no column 'f1', a feature in training");
  EXPECT_EQ(refusal("bag,f0,f1,a\nm,1,2,3\n"), "in:1: column 'a' was not a feature in training");
  // A run that does not know its names: by position, and only the number of features counts.
  Bags any = parse_unlabelled_bags("bag,b,a\nm,1,2\n", "in");
  arrange(any, {.width = 2}, "in");
  EXPECT_EQ(any.features[0], (std::vector<float>{1, 2}));
  EXPECT_THROW(arrange(any, {.width = 3}, "in"), FileError);
}

TEST(Graphs, LoopsAndDuplicatesCountOnce) {
  const Csr csr = symmetric_with_loops(4, {{0, 1}, {1, 0}, {2, 2}});
  EXPECT_EQ(csr.row_offsets, (std::vector<int32_t>{0, 2, 4, 5, 6}));
  EXPECT_EQ(csr.columns, (std::vector<int32_t>{0, 1, 0, 1, 2, 3}));
}

TEST(SplitItems, NeverOverlapAndKeepKeysTogether) {
  SplitRequest request{.validation = 0.1, .test = 0.2, .seed = 7};
  for (int i = 0; i < 1000; ++i) {
    request.keys.push_back(item_key(std::to_string(i / 3)));
    request.classes.push_back(i / 3 % 2);
  }
  const Splits parts = split(1000, request);
  std::set<int64_t> all;
  std::map<uint64_t, std::set<int>> sides;
  int side = 0;
  for (const auto* part : {&parts.train, &parts.validation, &parts.test}) {
    for (const int64_t i : *part) {
      EXPECT_TRUE(all.insert(i).second);
      sides[request.keys[static_cast<size_t>(i)]].insert(side);
    }
    ++side;
  }
  EXPECT_EQ(all.size(), 1000u);
  for (const auto& [key, where] : sides) EXPECT_EQ(where.size(), 1u) << key;
  EXPECT_NEAR(static_cast<double>(parts.test.size()), 200, 6);
  EXPECT_NEAR(static_cast<double>(parts.validation.size()), 100, 6);
  double ones = 0;
  for (const int64_t i : parts.test)
    ones += static_cast<double>(request.classes[static_cast<size_t>(i)]);
  EXPECT_NEAR(ones / static_cast<double>(parts.test.size()), 0.5, 0.03);
  EXPECT_EQ(split(1000, request).test, parts.test);  // the same seed
}

TEST(SplitItems, TheOrderOfItemsWithKeysDecidesNothing) {
  SplitRequest request{.validation = 0.1, .test = 0.2, .seed = 7};
  std::vector<int64_t> order(500);
  std::iota(order.begin(), order.end(), 0);
  const auto test_keys = [&] {
    request.keys.clear();
    request.classes.clear();
    for (const int64_t i : order) {
      request.keys.push_back(item_key(std::to_string(i / 2)));
      request.classes.push_back(i % 3);  // equal items of several classes
    }
    std::vector<uint64_t> keys = split(500, request).keys_of(Split::kTest);
    std::sort(keys.begin(), keys.end());
    return keys;
  };
  const std::vector<uint64_t> before = test_keys();
  EXPECT_NEAR(static_cast<double>(before.size()), 100, 8);
  Random(3).shuffle(order);
  EXPECT_EQ(test_keys(), before);
  request.seed = 8;
  EXPECT_NE(test_keys(), before);
}

TEST(SplitItems, OfSomeItemsThePartsHoldThem) {
  const std::vector<int64_t> some = {3, 7, 11, 20, 21, 30, 41, 50, 60, 90};
  const Splits parts = split(some, {.validation = 0.2, .test = 0.3, .seed = 2});
  EXPECT_EQ(parts.test.size(), 3u);
  EXPECT_EQ(parts.validation.size(), 2u);
  std::vector<int64_t> all;
  for (const auto* part : {&parts.train, &parts.validation, &parts.test})
    all.insert(all.end(), part->begin(), part->end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, some);
}

TEST(SplitItems, InOrderThePartsFollowEachOther) {
  const Splits parts = in_order({.train = 3, .validation = 0, .test = 2});
  EXPECT_EQ(parts.train, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(parts.validation.empty());
  EXPECT_EQ(parts.test, (std::vector<int64_t>{3, 4}));
}

TEST(SplitItems, FoldsPartitionTheItems) {
  std::vector<int> seen(103, 0);
  for (int64_t fold = 0; fold < 10; ++fold) {
    const Splits parts = split(103, {.fold = fold, .folds = 10, .seed = 3});
    for (const int64_t i : parts.test) ++seen[static_cast<size_t>(i)];
    std::set<int64_t> test(parts.test.begin(), parts.test.end());
    for (const auto* part : {&parts.train, &parts.validation})
      for (const int64_t i : *part) EXPECT_FALSE(test.contains(i));
    EXPECT_EQ(parts.train.size() + parts.validation.size() + parts.test.size(), 103u);
  }
  for (const int count : seen) EXPECT_EQ(count, 1);
}

TEST(Batching, EachItemOnceAndLikeLengthsTogether) {
  std::vector<int64_t> lengths(1000);
  Random random(5);
  for (int64_t& length : lengths) length = static_cast<int64_t>(1 + random.below(100));
  for (const BatchPlan& plan :
       {BatchPlan{.items = 32, .seed = 1}, BatchPlan{.tokens = 700, .seed = 1}}) {
    std::vector<int> seen(1000, 0);
    double spread = 0;
    const auto all = batches(1000, lengths, plan);
    for (const auto& batch : all) {
      int64_t low = 1000, high = 0, total = 0;
      for (const int64_t i : batch) {
        ++seen[static_cast<size_t>(i)];
        low = std::min(low, lengths[static_cast<size_t>(i)]);
        high = std::max(high, lengths[static_cast<size_t>(i)]);
        total += lengths[static_cast<size_t>(i)];
      }
      if (plan.tokens) {
        EXPECT_LE(total, 700);
      }
      spread += static_cast<double>(high - low) / static_cast<double>(all.size());
    }
    EXPECT_LT(spread, 10);
    for (const int count : seen) EXPECT_EQ(count, 1);
  }
  EXPECT_NE(batches(1000, lengths, {.seed = 1}), batches(1000, lengths, {.seed = 2}));
  EXPECT_EQ(batches(10, {}, {.items = 4, .seed = 1}).size(), 3u);
}

TEST(Draws, AreEvenAndTheSameEverywhere) {
  Random random(42);
  EXPECT_EQ(random.next(), 13679457532755275413u);  // SplitMix64's published stream for seed 42
  std::vector<int> counts(7, 0);
  double sum = 0, squares = 0;
  for (int i = 0; i < 70000; ++i) {
    ++counts[random.below(7)];
    const double z = random.normal();
    sum += z;
    squares += z * z;
  }
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);
  EXPECT_NEAR(sum / 70000, 0, 0.02);
  EXPECT_NEAR(squares / 70000, 1, 0.02);
}

TEST(Nearest, SuggestsWhatWasMeant) {
  const Strings names = {"bandwidth", "kernel", "standardise"};
  EXPECT_EQ(nearest("bandwith", names), "bandwidth");
  EXPECT_EQ(nearest("kenrel", names), "kernel");
  EXPECT_EQ(nearest("stand", names), "standardise");
  EXPECT_EQ(nearest("zzz", names), "");
}

TEST(Classification, MatchesHandCounts) {
  EXPECT_DOUBLE_EQ(metrics::accuracy({1, 0, 1, 1}, {1, 0, 0, 1}), 0.75);
  EXPECT_DOUBLE_EQ(metrics::macro_f1({1, 0, 1, 1}, {1, 0, 0, 1}), (2.0 / 3 + 4.0 / 5) / 2);
  EXPECT_DOUBLE_EQ(*metrics::auc({0.1, 0.4, 0.35, 0.8}, {0, 0, 1, 1}), 0.75);
  EXPECT_DOUBLE_EQ(*metrics::auc({0.5, 0.5}, {0, 1}), 0.5);
  EXPECT_FALSE(metrics::auc({0.5, 0.5}, {1, 1}));
}

}  // namespace
TEST(Digits, AMovedPictureLetsBlackIn) {
  const Digits digits{1, 2, 3, {10, 20, 30, 40, 50, 60}, {0}};
  const float black = -0.1307f / 0.3081f;
  std::vector<float> still(6), moved(6);
  normalised_digit(digits, 0, still.data());
  normalised_digit(digits, 0, moved.data(), {.down = 1, .right = -2});
  EXPECT_EQ(moved, (std::vector<float>{black, black, black, still[2], black, black}));
}

}  // namespace fovea::data
