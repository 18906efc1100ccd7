// A run's folder from within: drafts, manifests and the lock, without a training, so that the
// sanitisers see them.
#include "train/run/draft.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "fovea/error.h"
#include "train/run/run_lock.h"

namespace fovea::train {
namespace {

namespace fs = std::filesystem;

class DraftTest : public testing::Test {
 protected:
  DraftTest()
      : run_(fs::temp_directory_path() / ("fovea-draft-" + std::to_string(getpid())) / "run") {
    fs::create_directories(run_);
  }
  ~DraftTest() override { fs::remove_all(run_.parent_path()); }

  void publish(const std::map<std::string, std::string>& files) const {
    Draft draft(run_);
    draft.begin();
    for (const auto& [name, bytes] : files) {
      fs::create_directories((draft / name).parent_path());
      draft.write(name, bytes);
    }
    draft.publish("fovea 0", "sum");
  }
  static std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  fs::path run_;
};

TEST_F(DraftTest, ReadsBackWhatWasPublished) {
  publish({{"config.json", "{}"}, {"empty", ""}, {"old", "1"}});
  write(run_ / "notes.txt", "mine");
  publish({{"config.json", "{\"a\":1}"}, {"empty", ""}});
  const RunFolder whole(run_);
  EXPECT_EQ(whole.read("config.json"), "{\"a\":1}");
  EXPECT_EQ(whole.read("empty"), "");
  EXPECT_FALSE(fs::exists(run_ / "old"));
  EXPECT_EQ(contents(run_ / "notes.txt"), "mine");
}

TEST_F(DraftTest, AFileOfTheRunBeforeThatCannotBeRemovedIsNamed) {
  publish({{"config.json", "{}"}, {"old", "1"}});
  fs::remove(run_ / "old");
  fs::create_directories(run_ / "old/not-empty");
  try {
    publish({{"config.json", "[]"}});
    ADD_FAILURE() << "expected an error";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()),
              (run_ / "old").string() + ": cannot be removed: Directory not empty");
  }
  EXPECT_EQ(RunFolder(run_).read("config.json"), "[]");  // the new run is whole all the same
  fs::remove_all(run_ / "old");
  finish_publication(run_);
  EXPECT_FALSE(fs::exists(run_ / kReadyFolder));
  EXPECT_EQ(RunFolder(run_).read("config.json"), "[]");
}

TEST_F(DraftTest, ALockThatCannotBeRemovedNamesNobody) {
  const fs::path file = run_ / ".lock";
  {
    const RunLock lock(run_, RunLock::Kind::kExclusive);
    EXPECT_NE(contents(file), "");
    // A folder is not unlinked; the lock keeps the file that it has open.
    fs::rename(file, run_ / "moved");
    fs::create_directory(file);
  }
  EXPECT_EQ(contents(run_ / "moved"), "");
}

// A folder that came from others may hold a link to any file.
TEST_F(DraftTest, ALockOfOthersIsLeftAsItIs) {
  write(run_.parent_path() / "theirs", "precious");
  fs::create_symlink("../theirs", run_ / ".lock");
  EXPECT_THROW(RunLock(run_, RunLock::Kind::kExclusive), InvalidArgument);
  EXPECT_EQ(contents(run_.parent_path() / "theirs"), "precious");
  fs::remove(run_ / ".lock");
  write(run_ / ".lock", "{\"of\": \"another program\"}");
  EXPECT_THROW(RunLock(run_, RunLock::Kind::kExclusive), InvalidArgument);
  EXPECT_EQ(contents(run_ / ".lock"), "{\"of\": \"another program\"}");
}

TEST_F(DraftTest, WhatOthersPutInTheWayIsKeptEachTime) {
  for (const char* const text : {"first", "second"}) {
    publish({{"config.json", "{}"}});
    write(run_ / "vocabulary", text);
    write(run_ / "seed-2", text);
    publish({{"config.json", "{}"}, {"vocabulary", "ours"}, {"seed-2/config.json", "{}"}});
  }
  for (const std::string name : {"vocabulary", "seed-2"}) {
    EXPECT_EQ(contents(run_ / (name + ".before")), "first");
    EXPECT_EQ(contents(run_ / (name + ".before-2")), "second");
  }
  EXPECT_EQ(RunFolder(run_).read("vocabulary"), "ours");
  EXPECT_EQ(RunFolder(run_).read("seed-2/config.json"), "{}");
}

TEST_F(DraftTest, NothingBehindALinkIsRemovedOrWritten) {
  const std::map<std::string, std::string> two = {{"config.json", "{}"}, {"seed-2/notes", "ours"}};
  const fs::path theirs = run_.parent_path() / "theirs";
  fs::create_directories(theirs);
  write(theirs / "notes", "precious");
  for (const auto& next : {two, {{"config.json", "[]"}}}) {
    publish(two);
    fs::remove_all(run_ / "seed-2");
    fs::create_directory_symlink("../theirs", run_ / "seed-2");
    publish(next);
    EXPECT_EQ(contents(theirs / "notes"), "precious");
    EXPECT_EQ(RunFolder(run_).read("config.json"), next.at("config.json"));
  }
  fs::create_directory_symlink("../theirs", run_ / kTrainingFolder);
  EXPECT_FALSE(Draft(run_).begun());
  publish(two);
  Draft half(run_);
  half.begin();
  half.write("config.json", "{}");
  fs::create_symlink("../../theirs/notes", half / "model.safetensors");
  EXPECT_THROW(half.go_on(), InvalidArgument);
  EXPECT_EQ(contents(theirs / "notes"), "precious");
}

TEST_F(DraftTest, FoldersOfOthersWithNamesOfOursAreNotEmptied) {
  for (const char* const name : {kTrainingFolder, kReadyFolder}) {
    fs::create_directory(run_ / name);
    EXPECT_EQ(has_foreign_files(run_), std::string(name) == kReadyFolder);
    write(run_ / name / "notes", "mine");
    EXPECT_TRUE(has_foreign_files(run_));
    finish_publication(run_);
    EXPECT_EQ(contents(run_ / name / "notes"), "mine");
    fs::remove_all(run_ / name);
  }
  Draft draft(run_);
  draft.begin();
  write(draft / ".fovea-1-0.unfinished", "of a killed process");
  EXPECT_FALSE(has_foreign_files(run_));
  draft.write("config.json", "{}");
  draft.write("vocabulary", "");
  EXPECT_FALSE(has_foreign_files(run_));
}

TEST_F(DraftTest, AnUnpublishedDraftChangesNothing) {
  publish({{"config.json", "{}"}});
  Draft next(run_);
  next.begin_with(RunFolder(run_));
  next.write("config.json", "[]");
  EXPECT_EQ(RunFolder(run_).read("config.json"), "{}");
  next.publish("fovea 0", "sum");
  EXPECT_EQ(RunFolder(run_).read("config.json"), "[]");
}

// Every byte of it, and every length.
TEST_F(DraftTest, ADamagedManifestIsRefusedByName) {
  publish({{"config.json", "{}"}});
  const fs::path path = run_ / kManifestFile;
  const std::string whole = contents(path);
  const auto check = [&](const std::string& damaged) {
    write(path, damaged);
    try {
      RunFolder(run_).read("config.json");
      ADD_FAILURE() << "accepted: " << damaged;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
    }
  };
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    check(damaged);
  }
  // The last character is the end of the line.
  for (size_t length = 0; length + 1 < whole.size(); ++length) check(whole.substr(0, length));
}

}  // namespace
}  // namespace fovea::train
