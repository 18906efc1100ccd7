// Files that are wrong: each gives one line that names the file, the line and what was expected;
// and random bytes never do worse.
#include <gtest/gtest.h>

#include <functional>

#include "data/digits.h"
#include "data/files/file.h"
#include "data/files/json.h"
#include "data/formats/bags.h"
#include "data/formats/graph.h"
#include "data/formats/regression.h"
#include "data/formats/text.h"
#include "data/formats/vocabulary.h"
#include "data/generated/graph.h"
#include "data/pictures/idx.h"
#include "data/pictures/quantised_network.h"
#include "data/random.h"
#include "tests/data/files.h"

namespace fovea::data {
namespace {

class Hostile : public Files {
 protected:
  template <class Call>
  void expect(const std::string& place, const std::string& part, Call&& call) {
    try {
      call();
      ADD_FAILURE() << "expected an error with: " << part;
    } catch (const FileError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(part), std::string::npos) << text;
      EXPECT_NE(text.find(place), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  }
  void expect_regression(const std::string& text, const std::string& place,
                         const std::string& part) {
    const std::string path = write("t.csv", text);
    expect("t.csv" + place, part, [&] { regression(read_csv(path), {}); });
  }
};

TEST_F(Hostile, FilesThatCannotBeRead) {
  expect("nothing", "no such file", [&] { read_file((base_ / "nothing").string()); });
  expect(base_.string(), "found a folder", [&] { read_file(base_.string()); });
  expect("empty", "empty file", [&] { read_file(write("empty", "")); });
  expect("empty.gz", "empty file", [&] { read_file(write("empty.gz", gzip(""))); });
  const std::string packed = gzip(
      "some text that is long enough to be cut in several places, again and again and again\n");
  for (size_t cut = 2; cut < packed.size(); cut += 3)
    expect("cut.gz", "gzip stream", [&] { read_file(write("cut.gz", packed.substr(0, cut))); });
  std::string damaged = packed;
  damaged[packed.size() - 6] ^= 0x55;  // the checksum
  expect("bad.gz", "damaged gzip", [&] { read_file(write("bad.gz", damaged)); });
}

TEST_F(Hostile, Tables) {
  expect_regression("a,y\n1,2\n3\n", ":3:", "expected 2 fields as in the header, found 1");
  expect_regression("a,y\n1,2\n3,nan\n",
                    ":3:", "column 'y': expected a finite number, found 'nan'");
  expect_regression("a,y\n1,2\n3,NaN\n", ":3:", "--set missing=drop leaves such rows out");
  expect_regression("a,y\n1,2\nNaN,4\n", ":3:", "found 'NaN': --set missing=drop");
  expect_regression("a,y\n1,2\ninf,4\n", ":3:", "column 'a': expected a finite number");
  expect_regression("a,y\n1,2\n1e999,4\n", ":3:", "column 'a': expected a finite number");
  expect_regression("a,y\n,2\n", ":1:", "expected a numeric input column");
  expect_regression("a,y\n1,2\n,4\n", ":3:", "--set missing=drop");
  expect_regression("a,y\n", ":2:", "at least one row");
  expect_regression("a,a\n1,2\n", ":1:", "'a' occurs twice");
  expect_regression("a,y\n1,\"2\n", ":2:", "no closing quote");
  expect_regression("a,y\n1,\"2\"x\n", ":2:", "expected a comma");
  expect_regression("a,y\n1,\xff\xfe\n", ":2:", "expected UTF-8 text");
  expect_regression(std::string("a,y\n1,\0\n", 8), ":2:", "NUL byte");
  expect_regression(std::string("\xff\xfe"
                                "a\0,\0y\0\n\0",
                                10),
                    ":1:", "found UTF-16; save it as UTF-8");
  expect_regression("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "",
                    "a Git LFS pointer");
  expect_regression("a,y\n1,high\n", ":1:", "target column 'y' is not numeric");
  expect_regression("a,y\n1,2\n2,a lot\n3,4\n",
                    ":3:", "column 'y': expected a number, found 'a lot'; --set y=COLUMN");
  expect_regression("a,b,y\n1,2,5\n2,warm,6\n3,4,7\n",
                    ":3:", "column 'b': expected a number, found 'warm'; --set x=COLUMN");
  expect_regression("1.5,red,2\n2.5,blue,3\n",
                    ":1:", "expected a header line with column names, found the number '1.5'");
  expect_regression("7,2\n8,3\n", ":1:", "found the number '7'");
  expect_regression("5\n6\n", ":1:", "found the number '5'");
  expect_regression("a;y\n1;\"2\",3\n", ":2:", "expected a semicolon or the line's end");
  expect_regression("a;y\n1;2;3\n", ":2:", "expected 2 fields as in the header, found 3");
  expect_regression("a;y\n1,5;2\n2,5;3\nSum;9\n",
                    ":4:", "column 'a': expected a number, found 'Sum'");
  expect_regression("a\n1,5\n",
                    ":2:", "expected 1 field as in the header, found 2; with decimal commas");
  expect_regression("a;y\n1;2\n3;1.234,5\n4;7\n", ":3:", "expected a number, found '1.234,5'");
  const std::string path = write("c.csv", "width,height\n1,2\n");
  expect("c.csv:1", "did you mean 'height'", [&] { read_csv(path).column("heigth"); });
  expect("c.cvs", "no such file (did you mean 'c.csv'?)",
         [&] { read_csv(path.substr(0, path.size() - 3) + "cvs"); });
}

// A file's own words reach a terminal through messages: nothing in them may command it.
TEST_F(Hostile, MessagesArePrintable) {
  const auto message = [&](const std::string& text) -> std::string {
    try {
      regression(read_csv(write("t.csv", text)), {});
    } catch (const FileError& error) {
      return error.what();
    }
    return "read";
  };
  EXPECT_NE(message("\x1b[2Ja,y\n1,2\nx,4\n3,4\n").find("column '\\x1b[2Ja'"), std::string::npos);
  EXPECT_NE(message("a,y\n1,2\n\xC2\x9B"
                    "2J,4\n3,5\n")
                .find("'\\xc2\\x9b2J'"),
            std::string::npos);
  EXPECT_NE(message("\"a\nb\",y\n1,2\nx,4\n3,4\n").find("column 'a\\x0ab'"), std::string::npos);
  EXPECT_EQ(shown("caf\xC3\xA9"), "'caf\xC3\xA9'");
  EXPECT_EQ(shown(std::string(39, 'a') + "\xC3\xA9z"), "'" + std::string(39, 'a') + "\xC3\xA9…'");
}

TEST_F(Hostile, LabelledText) {
  expect("t:2", "expected label<TAB>text",
         [&] { read_labelled_text(write("t", "a\tb\nno tab here\n")); });
  expect("t:1", "expected a label",
         [&] { read_labelled_text(write("t", " text without a label\n")); });
  expect("t:2", "expected a label", [&] { read_labelled_text(write("t", "1 text\n\n1 more\n")); });
  expect("t:2", "\"text\"",
         [&] { read_labelled_text(write("t", "{\"label\":1,\"text\":\"a\"}\n{\"label\":1}\n")); });
  expect("t:2", "\"text\"",
         [&] { read_labelled_text(write("t", "{\"label\":1,\"text\":\"a\"}\n{broken\n")); });
  expect("t:2", "expected UTF-8", [&] { read_labelled_text(write("t", "1 fine\n1 caf\xe9\n")); });
  const LabelledText text = read_labelled_text(write("t", "good a\nbda b\n"));
  expect("t:2", "did you mean 'bad'", [&] { classes_in(text, {"good", "bad"}); });
  expect("b", "2 lines, expected 1",
         [&] { read_parallel_text(write("a", "x\n"), write("b", "x\ny\n")); });
  expect("p:1", "source<TAB>target", [&] { read_parallel_tsv(write("p", "a\tb\tc\n")); });
}

TEST_F(Hostile, IdxFiles) {
  const std::string good = idx_bytes({{2, 2}, {1, 2, 3, 4}});
  expect("i", "two zero bytes", [&] { read_idx(write("i", "PNG...")); });
  expect("i", "expected 4 as its shape says",
         [&] { read_idx(write("i", good.substr(0, good.size() - 1))); });
  expect("i", "expected 4 as its shape says", [&] { read_idx(write("i", good + "x")); });
  expect("i", "cut short", [&] { read_idx(write("i", good.substr(0, 7))); });
  expect("i", "out of range", [&] {
    read_idx(write(
        "i", std::string("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16)));
  });
  expect("l", "3 labels, expected 2", [&] {
    read_digits(write("i", idx_bytes({{2, 1, 1}, {0, 0}})),
                write("l", idx_bytes({{3}, {1, 2, 3}})));
  });
  expect("l", "label 12", [&] {
    read_digits(write("i", idx_bytes({{1, 1, 1}, {0}})), write("l", idx_bytes({{1}, {12}})));
  });
}

TEST_F(Hostile, PicturesThatAreNone) {
  expect("i", "0 pictures, expected at least one", [&] {
    read_digits(write("i", idx_bytes({{0, 28, 28}, {}})), write("l", idx_bytes({{0}, {}})));
  });
  expect("i", "pictures of 0 x 0 pixels", [&] {
    read_digits(write("i", idx_bytes({{2, 0, 0}, {}})), write("l", idx_bytes({{2}, {1, 2}})));
  });
  const auto set = [&](const std::string& part, int64_t side) {
    const auto pixels = static_cast<size_t>(side * side);
    write(part + "-images-idx3-ubyte",
          idx_bytes({{1, side, side}, std::vector<uint8_t>(pixels, 7)}));
    write(part + "-labels-idx1-ubyte", idx_bytes({{1}, {3}}));
  };
  set("train", 4);
  set("t10k", 5);
  expect("t10k-images", "5 x 5 pixels, expected 4 x 4", [&] { read_mnist(base_.string()); });
}

TEST_F(Hostile, NetworksOfMoreWeightsThanAnyFileHas) {
  // 65536^4 is 0 in 64 bits; a line of another kind of blank is a blank line.
  const std::string most = "65536x65536x65536x65536";
  const std::string text =
      "input 0 shape=1x1x65536 scale=1 zp=0\n\v\n"
      "CONV 1 0 out_shape=1x1x65536 out_scale=1 out_zp=0 stride=1 pad=SAME w_shape=" +
      most + " w_scale=1 w_zp=0 w_off=0 b_off=0\n";
  expect("n.txt:3", "w_shape=" + most + ": more weights than the 262144 bytes of n.bin",
         [&] { parse_quantised_network(text, "n.txt", std::string(4 * 65536, '\0'), "n.bin"); });
}

TEST_F(Hostile, JsonNestedDeeply) {
  const std::string deep(100'000, '[');
  EXPECT_TRUE(json_in(deep).is_discarded());
  EXPECT_TRUE(json_in(deep + std::string(100'000, ']')).is_discarded());
  expect("d.json", "nested deeper than 100", [&] { parse_json(deep, "d.json"); });
  expect("d.json", "not JSON (byte 2)", [&] { parse_json("[", "d.json"); });
  expect("d.json", "a number too large", [&] { parse_json("[1e999]", "d.json"); });
  expect("t:1", "expected {\"label\"", [&] {
    read_labelled_text(
        write("t", "{\"label\":" + deep + std::string(100'000, ']') + ",\"text\":\"a\"}\n"));
  });
  // Brackets in a text nest nothing.
  EXPECT_EQ(json_in("\"\\\"" + deep + "\"").get<std::string>().size(), deep.size() + 1);
}

TEST_F(Hostile, BagsAndVocabularies) {
  expect("b:1", "expected a header with bag, label and at least one feature, found id, label, f",
         [&] { read_bags(write("b", "id,label,f\n1,1,1\n")); });
  expect("b:3", "has label 0 here and 1 before",
         [&] { read_bags(write("b", "bag,label,f\n1,1,1\n1,0,2\n")); });
  expect("b:2", "expected an integer",
         [&] { read_bags(write("b", "bag,label,f\n1,perhaps,1\n")); });
  expect("v:2", "expected <unk>", [&] { Vocabulary::parse("<pad>\nthe\n", "v"); });
  expect("v:6", "expected a new word",
         [&] { Vocabulary::parse("<pad>\n<unk>\n<s>\n</s>\nthe\nthe\n", "v"); });
  for (const std::string word : {"", "the\r", "\r", "a\rb"})
    expect("v:5", "expected a word without an end of a line in it",
           [&] { Vocabulary::parse("<pad>\n<unk>\n<s>\n</s>\n" + word + "\r\n", "v"); });
  expect("v", "four special words", [&] { Vocabulary::parse("<pad>\n", "v"); });
}

TEST_F(Hostile, Graphs) {
  const auto folder = [&](const std::string& file, const std::string& bytes) {
    write("meta.txt", "nodes 3\nfeatures 2\nclasses 2\nedges 1\n");
    write("edges.txt", "0 1\n");
    write("features.txt", "0: 0 1\n1: 1\n2:\n");
    write("labels.txt", "0\n1\n-1\n");
    write("split_train.txt", "0\n");
    write("split_val.txt", "1\n");
    write("split_test.txt", "2\n");
    if (!file.empty()) write(file, bytes);
    return base_.string();
  };
  EXPECT_EQ(read_planetoid(folder("", "")).words.columns, (std::vector<int32_t>{0, 1, 1}));
  const Csr words = read_planetoid(folder("features.txt", "2:\n1: 1\n0: 1 0 1\n")).words;
  EXPECT_EQ(words.row_offsets, (std::vector<int32_t>{0, 2, 3, 3})) << "lines in another order";
  EXPECT_EQ(words.columns, (std::vector<int32_t>{0, 1, 1}));
  expect("edges.txt:1", "expected 0 to 2", [&] { read_planetoid(folder("edges.txt", "0 7\n")); });
  expect("edges.txt", "2 lines, expected 1 (meta.txt: edges)",
         [&] { read_planetoid(folder("edges.txt", "0 1\n1 2\n")); });
  expect("features.txt:1", "feature 9", [&] { read_planetoid(folder("features.txt", "0: 9\n")); });
  expect("features.txt", "no line of node 1",
         [&] { read_planetoid(folder("features.txt", "0: 0 1\n2:\n")); });
  expect("features.txt", "no line of node 0",
         [&] { read_planetoid(folder("features.txt", "2:\n1:\n")); });
  expect("features.txt:2", "given twice",
         [&] { read_planetoid(folder("features.txt", "0: 0 1\n0: 1\n")); });
  expect("labels.txt", "2 lines, expected 3",
         [&] { read_planetoid(folder("labels.txt", "0\n1\n")); });
  expect("labels.txt:2", "class 5", [&] { read_planetoid(folder("labels.txt", "0\n5\n1\n")); });
  expect("", "in two splits", [&] { read_planetoid(folder("split_test.txt", "1\n")); });
  // What is only claimed takes no memory.
  expect("features.txt", "no line of node 3, expected one for each of 2147483647 nodes",
         [&] { read_planetoid(folder("meta.txt", "nodes 2147483647\nfeatures 2\nclasses 2\n")); });
  expect("meta.txt", "nodes 2147483648, expected 1 to 2147483647",
         [&] { read_planetoid(folder("meta.txt", "nodes 2147483648\nfeatures 2\nclasses 2\n")); });
  for (const std::string name : {"features", "classes"})
    expect("meta.txt", name + " 4294967296, expected 1 to 10000000", [&] {
      read_planetoid(
          folder("meta.txt", "nodes 3\nfeatures 2\nclasses 2\n" + name + " 4294967296\n"));
    });
  expect("meta.txt", "expected a line 'nodes N'",
         [&] { read_planetoid(folder("meta.txt", "features 2\n")); });
}

// Wherever a file of such a folder was cut, the folder is refused.
TEST_F(Hostile, AGraphThatWasCutIsRefused) {
  const auto files = planetoid_files(
      generate_graph({.nodes = 60, .features = 12, .classes = 3, .labelled = 4}).graph);
  for (const auto& [name, bytes] : files) write(name, bytes);
  EXPECT_EQ(read_planetoid(base_.string()).nodes, 60);
  for (const auto& [name, bytes] : files) {
    for (size_t cut = 1; cut < bytes.size(); cut += 1 + bytes.size() / 200) {
      write(name, bytes.substr(0, cut));
      EXPECT_THROW(read_planetoid(base_.string()), FileError) << name << " cut at " << cut;
    }
    write(name, bytes);
  }
}

// Random and mutated bytes: every loader either reads them or throws FileError; nothing else, and
// no crash under a sanitiser.
TEST_F(Hostile, RandomBytesGiveAnErrorOrAnAnswer) {
  const std::vector<std::string> seeds = {"bag,label,f0,f1\nm,1,1,2\nk,0,3,4\n",
                                          "a,y\n1,2\n3,4\n",
                                          "1 good\n0 bad\n",
                                          "{\"label\":1,\"text\":\"a\"}\n",
                                          idx_bytes({{2, 2}, {1, 2, 3, 4}}),
                                          gzip("a,y\n1,2\n"),
                                          "<pad>\n<unk>\n<s>\n</s>\nword\n",
                                          "0 1\n1 2\n"};
  const std::vector<std::function<void(const std::string&)>> loaders = {
      [](const std::string& p) { regression(read_csv(p), {}); },
      [](const std::string& p) { read_bags(p); },
      [](const std::string& p) { read_labelled_text(p); },
      [](const std::string& p) { read_parallel_tsv(p); },
      [](const std::string& p) { read_idx(p); },
      [](const std::string& p) { read_edges(p, 10); },
      [](const std::string& p) { Vocabulary::parse(read_file(p), p); }};
  Random random(99);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = random.choice(seeds);
    const auto changes = 1 + random.below(4);
    for (uint64_t change = 0; change < changes && !bytes.empty(); ++change) {
      const size_t at = random.below(bytes.size());
      switch (random.below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          bytes.erase(at, 1 + random.below(3));
          break;
        case 2:
          bytes.insert(at, 1, ",\n\"\t\0 9-{"[random.below(9)]);
          break;
        default:
          bytes.resize(at);
      }
    }
    const std::string path = write("fuzz", bytes);
    for (size_t i = 0; i < loaders.size(); ++i) {
      try {
        loaders[i](path);
      } catch (const FileError& error) {
        ++refused;
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      }
    }
  }
  EXPECT_GT(refused, 3000);
}

}  // namespace
}  // namespace fovea::data
