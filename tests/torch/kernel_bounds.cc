#include "tests/torch/kernel_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "torch/cuda/runtime/nvrtc.h"

namespace fovea {
namespace {

// Of a multiprocessor; of a block, by the programming guide's table of compute capabilities.
constexpr int kRegisters = 65536;
int shared_of_device(const std::string& architecture) {
  return (architecture == "sm_80" ? 163 : 227) << 10;
}

std::string table_path() { return std::string(FOVEA_SOURCE) + "/tests/torch/kernel_resources.tsv"; }

// The largest number that the compiler reports of its kernels, 0 where it reports none.
int largest(const std::string& log, const char* pattern) {
  const std::regex what(pattern);
  int found = 0;
  for (std::sregex_iterator at(log.begin(), log.end(), what), end; at != end; ++at)
    found = std::max(found, std::stoi((*at)[1]));
  return found;
}

Taken taken_by(const std::string& log, const cuda::Program& program) {
  return {largest(log, "Used ([0-9]+) registers"),
          largest(log, "([0-9]+) bytes smem") + static_cast<int>(program.shared_bytes),
          largest(log, "([0-9]+) bytes spill stores")};
}

}  // namespace

KernelBounds::KernelBounds() {
  std::ifstream file(table_path());
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# NVRTC ")) is_of_this_version_ = line.substr(8) == cuda::nvrtc_version();
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string kind, type, architecture;
    Taken most;
    std::getline(fields, kind, '\t');
    std::getline(fields, type, '\t');
    std::getline(fields, architecture, '\t');
    if (!(fields >> most.registers >> most.shared >> most.spilled))
      throw std::runtime_error(table_path() + ": a line that is no row: " + line);
    bounds_[kind + '\t' + type + '\t' + architecture] = most;
  }
}

void KernelBounds::check(const CaseProgram& one, const std::string& architecture) {
  const auto result = cuda::compile(one.program.text, architecture);
  const std::string what = one.what + " for " + architecture;
  if (result.binary.empty()) {
    ADD_FAILURE() << what << " does not compile\n" << result.log;
    return;
  }
  ++compiled_;
  const Taken taken = taken_by(result.log, one.program);
  EXPECT_GT(taken.registers, 0) << what << ": no report\n" << result.log;
  EXPECT_LE(taken.registers * static_cast<int>(one.program.threads), kRegisters) << what;
  EXPECT_LE(taken.shared, shared_of_device(architecture)) << what;
  const std::string row = one.kind + '\t' + architecture;
  Taken& seen = seen_[row];
  seen.registers = std::max(seen.registers, taken.registers);
  seen.shared = std::max(seen.shared, taken.shared);
  seen.spilled = std::max(seen.spilled, taken.spilled);
  // Another version allocates other registers; then the device's limits are what is checked.
  if (std::getenv("FOVEA_KERNEL_TABLE") || !is_of_this_version_) return;
  const auto found = bounds_.find(row);
  if (found == bounds_.end()) {
    ADD_FAILURE() << what << ": kernel_resources.tsv has no row '" << row << "'";
    return;
  }
  EXPECT_LE(taken.registers, found->second.registers) << what << ": registers of a thread";
  EXPECT_LE(taken.shared, found->second.shared) << what << ": shared bytes of a block";
  EXPECT_LE(taken.spilled, found->second.spilled) << what << ": spilled bytes of a thread";
}

void KernelBounds::write() const {
  const char* path = std::getenv("FOVEA_KERNEL_TABLE");
  if (!path) return;
  std::ofstream file(path, std::ios::app);
  for (const auto& [row, taken] : seen_)
    file << row << '\t' << taken.registers << '\t' << taken.shared << '\t' << taken.spilled << '\n';
}

}  // namespace fovea
