#include "bench/memory.h"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>

namespace fovea::bench {
namespace {

// A line of /proc/self/status, in bytes.
std::optional<int64_t> status_bytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stoll(line.substr(field.size() + 1)) * 1024;
  }
  return std::nullopt;
}

bool reset_high_water() {
  std::ofstream file("/proc/self/clear_refs");
  file << 5 << std::flush;
  return file.good();
}

}  // namespace

std::optional<int64_t> peak_extra_memory(const std::function<void()>& run) {
  malloc_trim(0);
  if (!reset_high_water()) return std::nullopt;
  const auto before = status_bytes("VmRSS");
  run();
  const auto peak = status_bytes("VmHWM");
  if (!before || !peak) return std::nullopt;
  return *peak - *before;
}

std::optional<std::vector<double>> in_child(const std::function<std::vector<double>()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    int status = 0;
    try {
      const std::vector<double> numbers = body();
      const auto size = static_cast<ssize_t>(numbers.size() * sizeof(double));
      if (write(ends[1], numbers.data(), numbers.size() * sizeof(double)) != size) status = 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      status = 1;
    }
    _exit(status);  // no destructors: they belong to the parent
  }
  close(ends[1]);
  std::vector<double> numbers;
  double number;
  while (child > 0 && read(ends[0], &number, sizeof number) == sizeof number)
    numbers.push_back(number);
  close(ends[0]);
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return std::nullopt;
  return numbers;
}

}  // namespace fovea::bench
