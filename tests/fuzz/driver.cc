// The program libFuzzer runs: `--target=NAME` says which of the targets linked into it. An
// exception that leaves a target is a crash to libFuzzer.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/target.h"

namespace {

const fovea::fuzz::Target* chosen = nullptr;

[[noreturn]] void list_targets() {
  std::fprintf(stderr, "expected --target=NAME, one of\n");
  for (const auto& target : fovea::fuzz::targets()) std::printf("%s\n", target.name.c_str());
  std::exit(2);
}

}  // namespace

// What is freed stays poisoned for some megabytes, far longer than one execution takes, and where
// memory came from is not recorded: with the sanitiser's own defaults most of the time went there.
// ASAN_OPTIONS=malloc_context_size=30 on one input says it.
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=8:malloc_context_size=0";
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr const char* kOption = "--target=";
  for (int i = 1; i < *argc; ++i) {
    if (std::strncmp((*argv)[i], kOption, std::strlen(kOption)) != 0) continue;
    for (const auto& target : fovea::fuzz::targets())
      if (target.name == (*argv)[i] + std::strlen(kOption)) chosen = &target;
  }
  if (chosen == nullptr) list_targets();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fovea::fuzz::run(*chosen, {reinterpret_cast<const char*>(data), size});
  return 0;
}
