// fovea cuda: what the kernels for CUDA devices need before their first call.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>

#include "cli/output/streams.h"
#include "cli/verbs/verbs.h"
#include "data/files/file.h"
#include "data/formats/text.h"
#include "fovea/error.h"
#include "torch/cuda/runtime/cache.h"
#include "torch/cuda/warm.h"

namespace fovea::cli {
namespace {

struct CudaOptions {
  std::string action, list, architecture, driver;
  bool names = false;
};

// Lines without their comments; empty ones left out.
std::vector<std::string> lines_of(const std::string& path) {
  InputFile file(path);
  const Input input = file.input();
  std::vector<std::string> lines;
  data::each_line(input.stream, input.name, [&](size_t, std::string_view line) {
    line = data::trimmed(line.substr(0, line.find('#')));
    if (!line.empty()) lines.emplace_back(line);
  });
  if (lines.empty()) throw InvalidArgument(input.name + ": no line with a combination");
  return lines;
}

// "13.0", as nvidia-smi prints it, to the number that the driver gives: 13000.
std::string driver_number(const std::string& text) {
  int major = 0, minor = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, major);
  const bool good = error == std::errc() && dot != end && *dot == '.' && major > 0;
  const auto [rest, wrong] = std::from_chars(good ? dot + 1 : end, end, minor);
  if (!good || wrong != std::errc() || rest != end || minor < 0 || minor > 99)
    throw UsageError("--driver: '" + text +
                     "', expected a version of CUDA as nvidia-smi has it: 13.0");
  return std::to_string(1000 * major + 10 * minor);
}

// What was given, and this machine's for the rest.
cuda::Machine machine_for(const CudaOptions& options) {
  cuda::Machine machine{options.architecture,
                        options.driver.empty() ? "" : driver_number(options.driver)};
  if (!machine.architecture.empty() && !machine.driver.empty()) return machine;
  try {
    const cuda::Machine here = cuda::machine_here();
    if (machine.architecture.empty()) machine.architecture = here.architecture;
    if (machine.driver.empty()) machine.driver = here.driver;
    return machine;
  } catch (const Unsupported& error) {
    throw Unsupported(std::string(error.what()) +
                      "; for another machine give --architecture (sm_80, sm_90a) and --driver, the "
                      "version of CUDA that nvidia-smi has there");
  }
}

int warm(const CudaOptions& options) {
  const auto lines = lines_of(options.list);
  // All lines are read before the first is compiled: that takes seconds each.
  std::vector<cuda::Combination> combinations;
  for (const auto& line : lines) combinations.push_back(cuda::combination_of(line));
  if (options.names) {
    const std::string architecture = options.architecture.empty() ? "sm_90a" : options.architecture;
    for (const auto& combination : combinations) {
      for (const auto& program : cuda::programs_of(combination, architecture))
        std::cout << program.name << '\n';
    }
    return kDone;
  }
  const cuda::Machine machine = machine_for(options);
  size_t compiled = 0, there = 0, failed = 0;
  for (size_t n = 0; n < lines.size(); ++n) {
    try {
      for (const auto& program : cuda::programs_of(combinations[n], machine.architecture))
        ++(cuda::keep(program, machine) == cuda::Kept::kNow ? compiled : there);
    } catch (const Unsupported& error) {
      ++failed;
      std::cerr << "fovea cuda: " << lines[n] << ": " << error.what() << '\n';
    }
  }
  std::cout << fmt::format("{}: {} programs compiled, {} were there, {} lines failed; kept in {}\n",
                           machine.architecture, compiled, there, failed, cuda::cache_folder());
  return failed == 0 ? kDone : kFailed;
}

}  // namespace

Verb cuda_verb() {
  return {"cuda", "compile kernels for CUDA devices before their first call",
          "echo 'dot|soft_cap:cap=20;softmax;causal;bfloat16 128' | fovea cuda warm - --names",
          [](CLI::App& app) {
            auto options = std::make_shared<CudaOptions>();
            app.add_option("ACTION", options->action,
                           "warm: compile a list of combinations into the cache (FOVEA_CACHE, else "
                           "the user's cache folder)")
                ->required()
                ->check(CLI::IsMember({"warm"}));
            app.add_option("LIST", options->list,
                           "file, or - for standard input, with lines "
                           "SCORE;NORMALISER;STRUCTURE;TYPE WIDTH [VALUE_WIDTH] [step] [dropout] "
                           "[forward]; an array of a choice is @, # begins a comment")
                ->required();
            app.add_option("--architecture", options->architecture,
                           "of the devices they are for: sm_80, sm_90a; default: this machine's");
            app.add_option("--driver", options->driver,
                           "version of CUDA of the driver there, as nvidia-smi has it; default: "
                           "this machine's");
            app.add_flag("--names", options->names, "print the programs' names, compile nothing");
            return [options] { return warm(*options); };
          }};
}

}  // namespace fovea::cli
