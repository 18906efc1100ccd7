// The command as users run it, for tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace fovea::cli::test {

struct Outcome {
  int code;
  std::string output;  // what the shell line printed
};

// A line for the shell; `fovea` in it is a function that runs the command under test, started by
// `through`: for example env NAME=VALUE.
inline Outcome shell(const std::string& line, const std::string& through = "") {
  const char* command = std::getenv("FOVEA_COMMAND");
  if (command == nullptr) throw std::runtime_error("FOVEA_COMMAND: not set; run through ctest");
  FILE* pipe = popen(
      ("fovea() { " + through + " '" + std::string(command) + "' \"$@\"; }\n" + line).c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer;
  while (size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    output.append(buffer.data(), n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

// Standard output and error together.
inline Outcome fovea(const std::string& arguments, const std::string& through = "") {
  return shell("fovea " + arguments + " 2>&1", through);
}

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A folder for each test, removed after it.
class InFolder : public testing::Test {
 protected:
  void SetUp() override {
    base_ = std::filesystem::path(testing::TempDir()) /
            ("fovea_cli_" + std::to_string(getpid()) +
             testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(base_);
    std::filesystem::create_directories(base_);
  }
  void TearDown() override { std::filesystem::remove_all(base_); }

  std::string at(const std::string& name) const { return (base_ / name).string(); }

  std::filesystem::path base_;
};

}  // namespace fovea::cli::test
