// The cache of compiled programs: many processes at once, its bound, folders that cannot be written.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "torch/cuda/runtime/cache.h"
#include "torch/cuda/runtime/nvrtc.h"

namespace fovea::cuda {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test, which FOVEA_CACHE names.
class KernelsCacheFolder : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    setenv("FOVEA_CACHE", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("FOVEA_CACHE");
    fs::remove_all(folder_);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder_)) all.push_back(entry.path());
    return all;
  }
  const fs::path folder_ =
      fs::temp_directory_path() / ("fovea-cache-folder-" + std::to_string(getpid()));
};

std::string binary_of(int n) { return std::string(50'000, static_cast<char>('a' + n)); }

TEST_F(KernelsCacheFolder, KeepsABinaryUnderItsWholeKey) {
  EXPECT_FALSE(cached("a key"));
  keep_cached("a key", std::string("a\0binary", 8));
  EXPECT_EQ(cached("a key"), std::string("a\0binary", 8));
  EXPECT_FALSE(cached("another key"));
  ASSERT_EQ(files().size(), 1u) << "an unfinished file was left";
  EXPECT_EQ(files()[0].extension(), ".cubin");
  {
    std::fstream file(files()[0], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('Y');
  }
  EXPECT_FALSE(cached("a key")) << "its last byte was changed";
  // A file that was cut short, or is another key's, is no file.
  for (const fs::path& file : files()) fs::resize_file(file, 3);
  EXPECT_FALSE(cached("a key"));
}

TEST_F(KernelsCacheFolder, IsWholeWhileManyProcessesWriteAndReadIt) {
  constexpr int kProcesses = 8, kRounds = 30, kKeys = 3;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int round = 0; round < kRounds; ++round) {
        const int n = (p + round) % kKeys;
        keep_cached("key " + std::to_string(n), binary_of(n));
        const auto found = cached("key " + std::to_string(n));
        if (!found || *found != binary_of(n)) _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(files().size(), static_cast<size_t>(kKeys)) << "unfinished files were left";
}

TEST_F(KernelsCacheFolder, DropsWhatWasNotUsedForLongest) {
  for (const char* key : {"first", "second", "third"}) keep_cached(key, key);
  const auto before = fs::file_time_type::clock::now() - std::chrono::hours(2);
  for (const auto& file : files()) fs::last_write_time(file, before);
  EXPECT_EQ(cached("second"), "second");  // used now
  // Sparse: each takes no room on the disk, and together they are beyond the bound.
  for (int n = 0; n < 3; ++n) {
    const fs::path large = folder_ / ("large" + std::to_string(n) + ".cubin");
    std::ofstream(large).put('x');
    fs::resize_file(large, kCacheBytes / 3 + 1);
    fs::last_write_time(large, before + std::chrono::minutes(10 + n));
  }
  std::ofstream(folder_ / "somebody's.txt") << "not ours";
  keep_cached("fourth", "fourth");
  uint64_t total = 0;
  for (const auto& file : files()) total += fs::file_size(file);
  EXPECT_LE(total, kCacheBytes);
  EXPECT_FALSE(cached("first"));
  EXPECT_FALSE(fs::exists(folder_ / "large0.cubin"));
  EXPECT_TRUE(fs::exists(folder_ / "somebody's.txt"));
  EXPECT_EQ(cached("second"), "second");
  EXPECT_EQ(cached("fourth"), "fourth");
}

TEST_F(KernelsCacheFolder, IsWholeAfterAProcessWasKilledWhileItWrote) {
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int n = 0;; n = (n + 1) % 3) keep_cached("key " + std::to_string(n), binary_of(n));
    }
    usleep(static_cast<useconds_t>(1000 + 700 * round));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    for (int n = 0; n < 3; ++n) {
      const auto found = cached("key " + std::to_string(n));
      EXPECT_TRUE(!found || *found == binary_of(n)) << round;
    }
  }
  // What they left unfinished goes when it is old; another process may still be at a new one.
  const fs::path old = folder_ / ".fovea-1-0.unfinished", fresh = folder_ / ".fovea-1-1.unfinished";
  for (const auto& path : {old, fresh}) std::ofstream(path) << "half";
  const auto now = fs::file_time_type::clock::now();
  for (const auto& path : files()) {
    if (path.extension() == ".unfinished" && path != fresh)
      fs::last_write_time(path, now - std::chrono::hours(2));
  }
  keep_cached("key", "binary");
  for (const auto& path : files())
    EXPECT_TRUE(path.extension() == ".cubin" || path == fresh) << path;
}

TEST_F(KernelsCacheFolder, TellsProgramsApartByAllThatTheyDependOn) {
  const std::string key = cache_key("text", "sm_80", "13000");
  EXPECT_EQ(key, cache_key("text", "sm_80", "13000"));
  EXPECT_NE(key, cache_key("text ", "sm_80", "13000"));
  EXPECT_NE(key, cache_key("text", "sm_90a", "13000"));
  EXPECT_NE(key, cache_key("text", "sm_80", "13010"));
  EXPECT_NE(key.find("nvrtc " + nvrtc_version()), std::string::npos);
  EXPECT_NE(key.find(texts_digest()), std::string::npos);
}

TEST_F(KernelsCacheFolder, IsReadWhereItCannotBeWritten) {
  keep_cached("key", "binary");
  const auto readable = fs::perms::owner_read | fs::perms::owner_exec | fs::perms::group_read |
                        fs::perms::group_exec | fs::perms::others_read | fs::perms::others_exec;
  fs::permissions(folder_, readable);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && setuid(kNobody) != 0) _exit(1);  // root may write anywhere
    const bool reads = cached("key") == "binary";
    keep_cached("other", "binary");
    _exit(reads && !cached("other") ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(cached("key"), "binary");
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(KernelsCacheFolder, IsNotNeeded) {
  std::ofstream(folder_) << "a file where the folder would be";
  keep_cached("key", "binary");
  EXPECT_FALSE(cached("key"));
  // Where no folder can be made either.
  setenv("FOVEA_CACHE", "/proc/nowhere", 1);
  keep_cached("key", "binary");
  EXPECT_FALSE(cached("key"));
}

}  // namespace
}  // namespace fovea::cuda
