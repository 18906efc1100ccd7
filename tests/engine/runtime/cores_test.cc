// What control groups allow, from files such as the system shows and from files it never would.
#include "engine/runtime/cores.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace fovea::engine {
namespace {

constexpr char kSecond[] = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";
constexpr char kFirst[] =
    "10 9 0:2 / /proc rw - proc proc rw\n"
    "31 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 23 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct\n";

class Quota : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "fovea_quota_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path, std::ios::binary) << text;
  }
  void second(const std::string& group, const std::string& mounts = kSecond) {
    write("/proc/self/mountinfo", mounts);
    write("/proc/self/cgroup", "0::" + group + "\n");
  }
  size_t cores() const { return quota_cores(root_); }

  std::string root_;
};

TEST_F(Quota, OfVersionTwoIsRoundedUpToWholeCores) {
  second("/");
  for (const auto& [text, cores_expected] : {std::pair{"max 100000\n", 0u},
                                             {"100000 100000\n", 1u},
                                             {"150000 100000\n", 2u},
                                             {"20000 100000\n", 1u},
                                             {"400000 100000\n", 4u},
                                             {"3200000 50000", 64u}}) {
    write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(cores(), cores_expected) << text;
  }
}

TEST_F(Quota, IsTheLeastOfTheGroupAndThoseAboveIt) {
  second("/kube pods/pod 7/box");
  write("/sys/fs/cgroup/kube pods/cpu.max", "800000 100000\n");
  write("/sys/fs/cgroup/kube pods/pod 7/cpu.max", "200000 100000\n");
  write("/sys/fs/cgroup/kube pods/pod 7/box/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), 2u);
}

TEST_F(Quota, OfVersionOneStandsInTwoFiles) {
  write("/proc/self/mountinfo", kFirst);
  write("/proc/self/cgroup", "9:memory:/a\n4:cpu,cpuacct:/a\n0::/\n");
  EXPECT_EQ(cores(), 0u);
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cores(), 0u);
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(cores(), 3u);
}

TEST_F(Quota, IsFoundWhereAContainerShowsItsOwnGroupAsTheTop) {
  second("/docker/abc/inner",
         "31 23 0:28 /docker/abc /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n");
  write("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  write("/sys/fs/cgroup/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), 3u);
  second("/../../elsewhere");
  EXPECT_EQ(cores(), 3u) << "a group outside of what is mounted";
  second("/", R"(31 23 0:28 / /sys/fs/my\040group rw - cgroup2 cgroup2 rw)");
  write("/sys/fs/my group/cpu.max", "500000 100000\n");
  EXPECT_EQ(cores(), 5u) << "a mount point with a space";
}

TEST_F(Quota, OfFilesThatSayNothingSensibleIsNone) {
  EXPECT_EQ(cores(), 0u) << "no files";
  second("/");
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("max"), std::string("100000"),
        std::string("0 0\n"), std::string("100000 0\n"), std::string("-5 100000\n"),
        std::string("-9223372036854775808 -1\n"), std::string("1e5 100000\n"),
        std::string("99999999999999999999 1\n"), std::string("1 2 3\n"), std::string(300, '\0'),
        std::string(3 << 20, '7')}) {
    write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(cores(), 0u) << text.substr(0, 40);
  }
  write("/sys/fs/cgroup/cpu.max", "9223372036854775807 1\n");
  EXPECT_EQ(cores(), 4096u) << "more than any machine has";
  for (const char* mounts : {"", "- - -\n", "a b c d e f g -\n", "31 23 0:28 / /x rw - cgroup2\n",
                             "31 23 0:28 \\777\\ \\04 rw - cgroup2 cgroup2 rw\n"}) {
    second("/", mounts);
    EXPECT_EQ(cores(), 0u) << mounts;
  }
  for (const char* groups : {"", ":", "0:", "::", "x", "4:cpu", "\n\n::\n", "0:::::\n"}) {
    second("/");
    write("/sys/fs/cgroup/cpu.max", "max 100000\n");
    write("/proc/self/cgroup", groups);
    EXPECT_EQ(cores(), 0u) << groups;
  }
}

TEST(Threads, AskedForAreAPositiveNumberOrNotAskedFor) {
  EXPECT_EQ(threads_asked_for(nullptr), 0u);
  for (const char* text : {"", "0", "-3", "many", "3x", "99999999999999999999"})
    EXPECT_EQ(threads_asked_for(text), 0u) << text;
  EXPECT_EQ(threads_asked_for("3"), 3u);
  EXPECT_EQ(threads_asked_for("1000000000"), 4096u);
}

TEST(Cores, AreAtLeastOneAndAtMostTheMachines) { EXPECT_GE(usable_cores(), 1u); }

}  // namespace
}  // namespace fovea::engine
