// The roof of bfloat16 products. Highway 1.0.3 knows neither instruction, so these are intrinsics
// behind run-time checks.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "bench/roofs/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace fovea::bench {
#if defined(__x86_64__)
namespace {

constexpr size_t kRounds = 20000;

__attribute__((target("avx512f,avx512bf16"))) void run_dpbf16() {
  __m512 sum[kFmaChains];
  for (__m512& s : sum) s = _mm512_setzero_ps();
  const __m512bh one = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
  for (size_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kFmaChains; ++i) sum[i] = _mm512_dpbf16_ps(sum[i], one, one);
    asm volatile("");
  }
  __m512 total = sum[0];
  for (size_t i = 1; i < kFmaChains; ++i) total = _mm512_add_ps(total, sum[i]);
  alignas(64) float result[16];
  _mm512_store_ps(result, total);
  asm volatile("" ::"r"(result) : "memory");
}
constexpr double kDpbf16Flops = kRounds * kFmaChains * 16.0 * 2 * 2;

// Four accumulators of 16 x 16, as a kernel that multiplies 32 x 32 blocks has them.
constexpr size_t kAmxTiles = 4;
constexpr double kAmxFlops = kRounds * kAmxTiles * 16.0 * 16 * 32 * 2;

struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t column_bytes[16] = {};
  uint8_t rows[16] = {};
};

__attribute__((target("amx-tile,amx-bf16"))) void run_amx() {
  TileConfiguration configuration;
  for (size_t t = 0; t < 8; ++t) {
    configuration.column_bytes[t] = 64;
    configuration.rows[t] = 16;
  }
  // GCC 12's intrinsic says it reads eight bytes of the 64: without this the other stores are
  // dropped.
  asm volatile("" ::"r"(&configuration) : "memory");
  _tile_loadconfig(&configuration);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (size_t round = 0; round < kRounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

bool has_dpbf16() { return __builtin_cpu_supports("avx512bf16"); }

// The processor's bit, and the kernel's leave to use the tile registers.
bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const bool tiles = (d >> 24 & 1) != 0, bf16 = (d >> 22 & 1) != 0;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return tiles && bf16 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

// Leaf 0x1D lists the shapes tiles may have. Some hypervisors hide it; oneDNN then finds none,
// configures none, and dies at its first tile instruction, and libtorch with it.
static bool palettes_are_hidden() {
  if (bf16_unit().name != std::string("AMX")) return false;
  unsigned palettes = 0, b = 0, c = 0, d = 0;
  return !__get_cpuid_count(0x1d, 0, &palettes, &b, &c, &d) || palettes == 0;
}

const Bf16Unit& bf16_unit() {
  static const Bf16Unit unit = has_amx()      ? Bf16Unit{"AMX", kAmxFlops, run_amx}
                               : has_dpbf16() ? Bf16Unit{"dpbf16", kDpbf16Flops, run_dpbf16}
                                              : Bf16Unit{"", 0, nullptr};
  return unit;
}

#else

static bool palettes_are_hidden() { return false; }
const Bf16Unit& bf16_unit() {
  static const Bf16Unit unit{"", 0, nullptr};
  return unit;
}

#endif

bool hold_libtorch_to_what_runs() {
  if (!palettes_are_hidden()) return false;
  setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", 0);
  return true;
}

}  // namespace fovea::bench
