// Files are written whole or not at all, and where the path leads.
#include "io/write.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "fovea/error.h"
#include "io/folder.h"
#include "io/sha256.h"

namespace fovea::io {
namespace {

namespace fs = std::filesystem;

class Write : public testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(testing::TempDir()) / ("fovea_write_" + std::to_string(getpid()));
    fs::remove_all(base_);
    fs::create_directories(base_);
  }
  void TearDown() override { fs::remove_all(base_); }

  static std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string error_of(const fs::path& path) {
    try {
      write_file(path, "text");
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
  int64_t entries() const { return std::distance(fs::directory_iterator(base_), {}); }

  fs::path base_;
};

TEST_F(Write, LeavesOnlyTheCompleteFile) {
  write_file(base_ / "a", "first");
  write_file(base_ / "a", "second");
  EXPECT_EQ(contents(base_ / "a"), "second");
  {
    FileWriter stopped(base_ / "a");
    stopped.write("a part");
  }
  EXPECT_EQ(contents(base_ / "a"), "second");
  EXPECT_EQ(entries(), 1);
}

TEST_F(Write, KeepsTheModeAndTheOwnersUmask) {
  const mode_t before = ::umask(027);
  write_file(base_ / "new", "text");
  ::umask(before);
  EXPECT_EQ(fs::status(base_ / "new").permissions(), static_cast<fs::perms>(0640));
  fs::permissions(base_ / "new", static_cast<fs::perms>(0604));
  write_file(base_ / "new", "again");
  EXPECT_EQ(fs::status(base_ / "new").permissions(), static_cast<fs::perms>(0604));
}

TEST_F(Write, FollowsLinksAndKeepsThem) {
  fs::create_directories(base_ / "far");
  fs::create_symlink("far/target", base_ / "first");
  fs::create_symlink("first", base_ / "second");
  for (const char* text : {"to nothing yet", "to a file"}) {
    write_file(base_ / "second", text);
    EXPECT_TRUE(fs::is_symlink(base_ / "first") && fs::is_symlink(base_ / "second"));
    EXPECT_EQ(contents(base_ / "far/target"), text);
  }
  fs::create_symlink("around", base_ / "around");
  EXPECT_NE(error_of(base_ / "around").find("Too many levels of symbolic links"),
            std::string::npos);
}

TEST_F(Write, WritesInPlaceWhatIsNoRegularFile) {
  write_file("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const fs::path pipe = base_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = contents(pipe); });
  write_file(pipe, "through the pipe");
  reader.join();
  EXPECT_EQ(read, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

// In a container every program is process 1: one that was killed has left its name to the next.
TEST_F(Write, WhatAKilledProcessOfTheSameNumberLeftIsNotInTheWay) {
  const std::string begins = ".fovea-" + std::to_string(getpid()) + "-";
  for (int number = 0; number < 200; ++number)
    std::ofstream(base_ / (begins + std::to_string(number) + ".unfinished")) << "a part";
  write_file(base_ / "a", "whole");
  EXPECT_EQ(contents(base_ / "a"), "whole");
  EXPECT_EQ(entries(), 201);
}

TEST_F(Write, WaitsForTheReaderOfAPipeThatDoesNotWait) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  const std::string text(1 << 20, 'a');
  std::thread writer([&] {
    write_all(ends[1], text, "pipe");
    ::close(ends[1]);
  });
  std::string read, block(1 << 16, ' ');
  for (ssize_t count = -1; count != 0;) {
    count = ::read(ends[0], block.data(), block.size());
    if (count > 0) read.append(block, 0, static_cast<size_t>(count));
  }
  writer.join();
  ::close(ends[0]);
  EXPECT_EQ(read, text);
}

TEST_F(Write, AppendsToAnOpenDescriptor) {
  std::ofstream(base_ / "log") << "before ";
  const int log = ::open((base_ / "log").c_str(), O_WRONLY | O_APPEND);
  write_file("/dev/fd/" + std::to_string(log), "after");
  ::close(log);
  EXPECT_EQ(contents(base_ / "log"), "before after");
}

TEST_F(Write, FailuresNameTheFileAndTheReason) {
  EXPECT_EQ(error_of("/dev/full"), "/dev/full: cannot be written: No space left on device");
  EXPECT_EQ(error_of(base_), base_.string() + ": cannot be written: Is a directory");
  EXPECT_EQ(error_of(base_ / "absent/a"),
            (base_ / "absent/a").string() + ": cannot be created: No such file or directory");
  EXPECT_EQ(error_of(""), "file to write: an empty name, expected a path");
  EXPECT_EQ(entries(), 0);
}

// The standard's own examples.
TEST_F(Write, AFolderIsMadeOrTheLinkInItsWayIsNamed) {
  EXPECT_TRUE(make_folder(base_ / "a/b"));
  EXPECT_FALSE(make_folder(base_ / "a/b"));
  fs::create_directory_symlink(base_ / "a", base_ / "good");
  EXPECT_TRUE(make_folder(base_ / "good/c"));
  fs::create_directory_symlink("nowhere", base_ / "bad");
  write_file(base_ / "file", "text");
  const std::string bad = (base_ / "bad").string();
  for (const std::string name : {"bad", "bad/b"}) {
    try {
      make_folder(base_ / name);
      ADD_FAILURE() << "expected an error";
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()), (base_ / name).string() + ": cannot be created: " + bad +
                                               " is a link to nowhere, which does not exist");
    }
  }
  EXPECT_THROW(make_folder(base_ / "file/b"), InvalidArgument);
}

TEST(Sha256, IsTheStandards) {
  for (const auto code : {Sha256::Code::kFastest, Sha256::Code::kPlain}) {
    const auto sum = [&](const std::string& text, int times = 1) {
      Sha256 out(code);
      for (int i = 0; i < times; ++i) out.add(text);
      return out.hex();
    };
    EXPECT_EQ(sum(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sum("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sum(std::string(1000, 'a'), 1000),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

TEST(Sha256, DoesNotDependOnHowTheBytesArrive) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (const size_t step : {1u, 3u, 55u, 56u, 63u, 64u, 65u, 128u}) {
    Sha256 sum;
    for (size_t at = 0; at < text.size(); at += step)
      sum.add(std::string_view(text).substr(at, step));
    EXPECT_EQ(sum.hex(), sha256(text)) << step;
  }
}

}  // namespace
}  // namespace fovea::io
