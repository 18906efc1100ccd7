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
    for (const auto& [name, bytes] : files) draft.write(name, bytes);
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
