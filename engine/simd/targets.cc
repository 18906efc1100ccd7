// The part of Highway that is not in its headers: which SIMD targets this processor has, and which
// is chosen.
//
// Debian ships Highway's own version as a shared library only. These few definitions replace it, so
// that a program that links the engine depends on nothing else. The build renames the namespace to
// fovea_hwy wherever we compile Highway (engine/CMakeLists.txt), so that it does not clash with a
// program's own Highway of another version.
#include "hwy/targets.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace hwy {
namespace {

std::atomic<int64_t> disabled{0};
std::atomic<int64_t> mocked{0};

#if HWY_ARCH_X86
// Asked of the processor itself: clang 14's __builtin_cpu_supports does not know this name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

int64_t detect() {
  int64_t targets = HWY_ENABLED_BASELINE;
#if HWY_ARCH_X86
  // The compiler's checks include whether the system saves the wide registers. The sets are those Highway
  // compiles each target for.
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c() &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")) {
    targets |= HWY_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
      targets |= HWY_AVX3;
    }
  }
#endif
  return targets;
}

}  // namespace

int64_t SupportedTargets() {
  static const int64_t detected = detect();
  const int64_t mock = mocked.load();
  const int64_t targets = (mock != 0 ? mock : detected) & ~disabled.load();
  return targets != 0 ? targets : HWY_STATIC_TARGET;
}

void DisableTargets(int64_t targets) {
  disabled.store(targets);
  GetChosenTarget().DeInit();
}

void SetSupportedTargetsForTest(int64_t targets) {
  mocked.store(targets);
  GetChosenTarget().DeInit();
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

// Reached by a failed HWY_ASSERT only, which nothing in the engine's public functions can make
// fail.
void Abort(const char* file, int line, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "%s:%d: ", file, line);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::abort();
}

}  // namespace hwy
