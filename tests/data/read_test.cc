// What cannot be read is never taken for its end: the message has the file and the system's reason.
#include "data/files/read.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <set>
#include <sstream>

#include "data/count_of.h"
#include "data/files/file.h"
#include "tests/data/files.h"

namespace fovea::data {
namespace {

class Read : public Files {
 protected:
  template <class Call>
  static std::string said(const Call& call) {
    try {
      call();
    } catch (const FileError& error) {
      return error.what();
    }
    return "nothing";
  }
};

// No more files than are open.
class NoHandleLeft {
 public:
  NoHandleLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoHandleLeft() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

TEST_F(Read, WhatALineNamesIsSaidWithTheLine) {
  const auto read = [](const std::string& text, const std::string& name) {
    std::istringstream lines(text);
    each_line(lines, name, [&](size_t number, std::string_view line) {
      if (line == "wrong") throw FileError(name, number, "expected another");
      read_file(std::string(line));
    });
  };
  EXPECT_EQ(said([&] { read("/nowhere/a.png\n", "list"); }),
            "list:1: /nowhere/a.png: no such file");
  EXPECT_EQ(said([&] { read("wrong\n", "list"); }), "list:1: expected another");
}

TEST_F(Read, OneIsCountedAsOne) {
  EXPECT_EQ(count_of(1, "class"), "1 class");
  EXPECT_EQ(count_of(0, "class", " in it"), "0 classes in it");
  EXPECT_EQ(count_of(size_t{1}, "number", " z"), "1 number z");
}

TEST_F(Read, AFailureHasItsReason) {
  // The first page of a process is nobody's: reading it fails half-way, as a broken disk does.
  EXPECT_EQ(said([] { read_file("/proc/self/mem"); }),
            "/proc/self/mem: cannot be read: Input/output error");
  EXPECT_EQ(said([] { read_bytes("/dev/null/x"); }),
            "/dev/null/x: cannot be read: Not a directory");
}

TEST_F(Read, ALinkThatLeadsNowhereSaysWhere) {
  const std::string link = (base_ / "picture.png").string();
  std::filesystem::create_symlink("gone.png", link);
  write("picture2.png", "x");
  EXPECT_EQ(said([&] { read_bytes(link); }),
            link + ": no such file: a link to 'gone.png', which is not there");
}

TEST_F(Read, WithoutHandlesSaysSo) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the undefined-behaviour sanitiser opens a pipe to look at an object's type";
#endif
  const std::string path = write("there", "text"), folder = base_.string();
  const NoHandleLeft none;
  EXPECT_EQ(said([&] { read_bytes(path); }), path + ": cannot be read: Too many open files");
  EXPECT_EQ(said([&] { entries_of(folder); }), folder + ": cannot be read: Too many open files");
}

TEST_F(Read, GivesBytesAsTheyAreAndNamesInOrder) {
  const std::string packed = gzip("text");
  EXPECT_EQ(read_bytes(write("b.gz", packed)), packed);
  EXPECT_EQ(read_bytes(write("a", "")), "");
  EXPECT_FALSE(read_bytes("/proc/self/stat").empty()) << "of no size until it is read";
  const auto entries = entries_of(base_);
  EXPECT_TRUE(std::is_sorted(entries.begin(), entries.end()));
  EXPECT_EQ(std::set(entries.begin(), entries.end()),
            (std::set<std::filesystem::path>{base_ / "a", base_ / "b.gz"}));
}

TEST_F(Read, WhatOtherProgramsLeaveInAFolderIsNotOfIt) {
  write("picture.png", "");
  for (const char* other : {".DS_Store", "._picture.png"}) write(other, "");
  for (const char* other : {".ipynb_checkpoints", "__MACOSX"})
    std::filesystem::create_directories(base_ / other);
  EXPECT_EQ(entries_of(base_), std::vector<std::filesystem::path>{base_ / "picture.png"});
}

}  // namespace
}  // namespace fovea::data
