#include "train/failure.h"

#include <filesystem>
#include <new>
#include <string_view>

namespace fovea::train {
namespace {

constexpr const char* kNoMemory = "not enough memory";

// "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you
// tried to allocate 4000000 bytes. …": the number of bytes, if it is there.
std::string no_memory(std::string_view text) {
  constexpr std::string_view kBefore = "tried to allocate ";
  const size_t start = text.find(kBefore);
  if (start == std::string_view::npos) return kNoMemory;
  text.remove_prefix(start + kBefore.size());
  return std::string(kNoMemory) + " for " + std::string(text.substr(0, text.find(" bytes"))) +
         " bytes more";
}

}  // namespace

std::string words_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return kNoMemory;
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return file->path1().string() + ": " + file->code().message();
  const std::string_view text = error.what();
  if (text.find("DefaultCPUAllocator") != std::string_view::npos) return no_memory(text);
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace fovea::train
