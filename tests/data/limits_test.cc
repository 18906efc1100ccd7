// Inputs without end, or with more than anyone means: each is refused at its limit, which the message
// names together with the way to set another.
#include "data/files/limits.h"

#include <gtest/gtest.h>

#include <sstream>

#include "data/files/file.h"
#include "data/files/lines.h"
#include "data/formats/csv.h"
#include "tests/data/files.h"

namespace fovea::data {
namespace {

class Limits : public Files {
 protected:
  void TearDown() override {
    set_limits("");
    Files::TearDown();
  }
  template <class Call>
  static std::string said(Call&& call) {
    try {
      call();
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      return error.what();
    }
    return "nothing";
  }
  static void expect(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
};

TEST_F(Limits, AreReadFromTextAndNamed) {
  set_limits("file=3K,line=2MiB,items=7");
  EXPECT_EQ(limit(Limit::kFile), 3072u);
  EXPECT_EQ(limit(Limit::kLine), 2u << 20);
  EXPECT_EQ(limit(Limit::kItems), 7u);
  EXPECT_EQ(beyond(Limit::kLine),
            "more than 2 MiB, the limit `line` (FOVEA_LIMITS=line=4MiB sets another)");
  EXPECT_EQ(beyond(Limit::kItems),
            "more than 7 items, the limit `items` (FOVEA_LIMITS=items=14 sets another)");
  set_limits("");
  EXPECT_EQ(limit(Limit::kLine), 16u << 20);
  expect(said([] { set_limits("lien=3"); }), "no limit 'lien' (did you mean 'line'?)");
  for (const char* bad : {"line", "line=", "line=x", "line=-1", "line=0", "line=3T", "line=3Kb",
                          "line=99999999999999999999", "line=18446744073709551615G"})
    expect(said([&] { set_limits(bad); }), "expected line=NUMBER");
}

TEST_F(Limits, AFileWithoutEnd) {
  set_limits("file=1M");
  expect(said([] { read_file("/dev/zero"); }),
         "/dev/zero: more than 1 MiB, the limit `file` (FOVEA_LIMITS=file=2MiB");
  expect(said([&] { read_file(write("bomb.gz", gzip(std::string(4 << 20, 'a')))); }),
         "bomb.gz: unpacked, it is more than 1 MiB");
  EXPECT_EQ(read_file(write("fits", std::string(1 << 20, 'a'))).size(), 1u << 20);
  std::istringstream endless(std::string(2 << 20, 'a'));
  expect(said([&] { read_stream(endless, "input"); }), "input: more than 1 MiB");
}

TEST_F(Limits, ALineWithoutEnd) {
  set_limits("line=10");
  std::istringstream stream("short\n" + std::string(11, 'x') + "\nafter\n");
  LineReader lines(stream, "input");
  EXPECT_EQ(lines.next_lines(5), std::vector<std::string>{"short"});  // before it is refused
  expect(said([&] { lines.next_lines(5); }), "input:2: a line of more than 10 bytes");
  expect(said([&] {
           each_line(std::string_view("short\nand longer ones\n"), "file",
                     [](size_t, std::string_view) {});
         }),
         "file:2: a line of more than 10 bytes");
}

TEST_F(Limits, TooManyItems) {
  set_limits("items=3");
  expect(said([] {
           each_line(std::string_view("1\n2\n3\n4\n"), "file", [](size_t, std::string_view) {});
         }),
         "file:4: more than 3 items");
  EXPECT_EQ(parse_csv("a,y\n1,2\n3,4\n", "t").rows.size(), 2u);
  expect(said([] { parse_csv("a,y\n1,2\n3,4\n5,6\n", "t"); }), "t:4: more than 3 items");
}

TEST_F(Limits, TooManyTokensAreCountedAndTheirLineIsNamed) {
  set_limits("sentence=3");
  const auto visit = [](size_t, std::string_view line) {
    check_count(Limit::kSentence, line.size());
  };
  EXPECT_NO_THROW(each_line(std::string_view("abc\n"), "file", visit));
  EXPECT_EQ(said([&] { each_line(std::string_view("abc\nabcd\n"), "file", visit); }),
            "file:2: 4 tokens, more than 3 tokens, the limit `sentence` (FOVEA_LIMITS=sentence=6 "
            "sets another)");
}

// A line of a text where paths are expected.
TEST_F(Limits, WhatIsTooLongForAPathIsCut) {
  EXPECT_EQ(FileError(std::string(5000, 'a'), 0, "no such file").what(),
            "'" + std::string(40, 'a') + "…': no such file");
}

using Lines = std::vector<std::string>;

// The lines of a file, which must be those of a stream.
Lines of(const std::string& text) {
  Lines whole, streamed;
  each_line(std::string_view(text), "t",
            [&](size_t, std::string_view line) { whole.emplace_back(line); });
  std::istringstream stream(text);
  each_line(stream, "t", [&](size_t, std::string_view line) { streamed.emplace_back(line); });
  EXPECT_EQ(whole, streamed);
  return whole;
}

TEST_F(Limits, AStreamHasTheLinesOfTheFile) {
  EXPECT_EQ(of("one\r\ntwo\r\r\nthree\r"), (Lines{"one", "two\r", "three"}));
  EXPECT_EQ(of("one\n\r"), (Lines{"one", ""}));
  set_limits("line=3");  // which neither a byte order mark nor an end counts into
  EXPECT_EQ(of("\xEF\xBB\xBFone\r\ntwo\r\n"), (Lines{"one", "two"}));
  std::istringstream longer("a\none\r\r\n");
  expect(said([&] { each_line(longer, "t", [](size_t, std::string_view) {}); }),
         "t:2: a line of more than 3 bytes");
}

TEST_F(Limits, AByteOrderMarkIsNoPartOfTheFirstLine) {
  std::istringstream stream("\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n");
  LineReader lines(stream, "t");
  EXPECT_EQ(lines.next_lines(9), (Lines{"one", "\xEF\xBB\xBFtwo"}));
  EXPECT_EQ(of("\xEF\xBB\xBF"), Lines{""});
}

// Old text, and what some spreadsheets write: a line ends with "\r" alone.
TEST_F(Limits, ReturnsAloneEndLines) {
  EXPECT_EQ(of("one\rtwo\rthree"), (Lines{"one", "two", "three"}));
  EXPECT_EQ(of("one\rtwo\r"), (Lines{"one", "two"}));
  EXPECT_EQ(of("one\r\ntwo\r\n"), (Lines{"one", "two"}));
  EXPECT_EQ(of("one\ntwo\rstill two\n"), (Lines{"one", "two\rstill two"}));
  EXPECT_EQ(of("\n\nthree\n"), (Lines{"", "", "three"}));
  const Table table = parse_csv("a,y\r1,2\r3,4\r", "t");
  EXPECT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.lines, (std::vector<size_t>{2, 3}));
}

}  // namespace
}  // namespace fovea::data
