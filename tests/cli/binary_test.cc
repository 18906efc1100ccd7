// The command as users run it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct Outcome {
  int code;
  std::string output;  // standard output and error together
};

Outcome fovea(const std::string& arguments) {
  const char* command = std::getenv("FOVEA_COMMAND");
  if (command == nullptr) throw std::runtime_error("FOVEA_COMMAND: not set; run through ctest");
  FILE* pipe = popen(("'" + std::string(command) + "' " + arguments + " 2>&1").c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer;
  while (size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    output.append(buffer.data(), n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

TEST(Binary, VersionNamesEveryPart) {
  const Outcome outcome = fovea("--version");
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : {"fovea ", "libtorch ", "simd ", "threads ", "gpu "}) {
    EXPECT_NE(outcome.output.find(part), std::string::npos) << part << " missing in\n"
                                                            << outcome.output;
  }
}

TEST(Binary, WrongUsageExitsTwoWithOneLine) {
  for (const char* arguments : {"", "--no-such-option", "qqqqqq"}) {
    const Outcome outcome = fovea(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.output.find('\n'), outcome.output.size() - 1) << outcome.output;
  }
}

}  // namespace
