// kill -9 at random moments, then --resume: the weights must be those of an undisturbed run, bit
// for bit.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "data/random.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

pid_t start(const fs::path& out, const char* epochs = nullptr) {
  const char* program = std::getenv("FOVEA_TRAIN_EXAMPLE");
  if (program == nullptr)
    throw std::runtime_error("FOVEA_TRAIN_EXAMPLE: not set; run through ctest");
  const pid_t child = fork();
  if (child == 0) {
    execl(program, program, out.c_str(), epochs, nullptr);
    _exit(127);
  }
  return child;
}

// True where the child ended by itself, and well.
bool finished(pid_t child, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  int status = 0;
  while (Clock::now() < end) {
    if (waitpid(child, &status, WNOHANG) == child) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return false;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Kill, TwentyKillsLeaveTheSameWeights) {
  const fs::path base = fs::path(testing::TempDir()) / ("fovea_kill_" + std::to_string(getpid()));
  fs::create_directories(base);
  const auto begin = Clock::now();
  ASSERT_TRUE(finished(start(base / "whole"), std::chrono::minutes(2)));
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);

  fovea::data::Random random(20261115);
  int kills = 0;
  bool done = false;
  while (kills < 20 && !done) {
    // Anywhere from the start of the program to its end; a run that gets through early starts again
    // from nothing.
    const auto wait = std::chrono::milliseconds(
        1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(whole.count()))));
    if (finished(start(base / "killed"), wait)) {
      EXPECT_EQ(contents(base / "whole" / "model.safetensors"),
                contents(base / "killed" / "model.safetensors"));
      fs::remove_all(base / "killed");
      done = kills >= 20;
    } else {
      ++kills;
    }
  }
  ASSERT_TRUE(finished(start(base / "killed"), std::chrono::minutes(1)));
  EXPECT_EQ(kills, 20);
  const std::string weights = contents(base / "whole" / "model.safetensors");
  EXPECT_FALSE(weights.empty());
  EXPECT_EQ(weights, contents(base / "killed" / "model.safetensors"));
  EXPECT_EQ(contents(base / "whole" / "metrics.jsonl"),
            contents(base / "killed" / "metrics.jsonl"));
  fs::remove_all(base);
}

// What a training adds to a run that was finished counts when all of it is there.
TEST(Kill, AFinishedRunThatIsExtendedAndKilledStaysAsItWas) {
  const fs::path base = fs::path(testing::TempDir()) / ("fovea_extend_" + std::to_string(getpid()));
  ASSERT_TRUE(finished(start(base), std::chrono::minutes(2)));
  std::map<std::string, std::string> before;
  for (const auto& entry : fs::directory_iterator(base))
    before[entry.path().filename().string()] = contents(entry.path());
  ASSERT_TRUE(before.contains("manifest.json"));
  const fs::path state = base / ".training" / "state.safetensors";
  const pid_t child = start(base, "1000000");
  while (contents(state).empty() || contents(state) == before.at("state.safetensors"))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const auto& [name, bytes] : before) EXPECT_EQ(contents(base / name), bytes) << name;
  fs::remove_all(base);
}

}  // namespace
