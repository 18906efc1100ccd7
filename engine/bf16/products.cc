#include "engine/bf16/products.h"

#include <string>

#include "engine/simd/hold.h"
#include "fovea/engine.h"
#include "fovea/error.h"

namespace fovea::engine {
namespace {

enum class Held { kBest, kNone, kDpbf16, kAmx };
Held held = Held::kBest;

// dpbf16 has twice the products of a float32 multiply-add. AMD's cores issue one of either each
// cycle; Intel's issue two multiply-adds per cycle but a dpbf16 every other one, and are faster with
// float32 (or AMX).
bool dpbf16_pays() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") && dpbf16_products();
#else
  return false;
#endif
}

}  // namespace

const Bf16Products* bf16_products() {
  // Both come with AVX-512: an engine held below that has neither.
  if (held == Held::kNone || std::string(simd_target()) != "AVX3") return nullptr;
  if (held == Held::kDpbf16) return dpbf16_products();
  if (const Bf16Products* amx = amx_products()) return amx;
  return dpbf16_pays() ? dpbf16_products() : nullptr;
}

void hold_bf16_unit(const char* name) {
  const std::string wanted = name ? name : "";
  if (wanted.empty())
    held = Held::kBest;
  else if (wanted == "none")
    held = Held::kNone;
  else if (wanted == "dpbf16" && dpbf16_products())
    held = Held::kDpbf16;
  else if (wanted == "AMX" && amx_products())
    held = Held::kAmx;
  else
    throw InvalidArgument("bf16 unit: '" + wanted + "', expected none" +
                          (dpbf16_products() ? ", dpbf16" : "") + (amx_products() ? ", AMX" : ""));
}

}  // namespace fovea::engine
