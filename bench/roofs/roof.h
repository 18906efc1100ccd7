// What the machine can do, measured on the threads a benchmark uses: the denominator of every per
// cent.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fovea/engine.h"

namespace fovea::bench {

enum class Roof : uint8_t {
  kFma,            // float32 multiply-adds of the chosen SIMD target, FLOP/s
  kBf16,           // bfloat16 products added in float32, FLOP/s
  kTriad,          // a = b + 3 c through memory, bytes/s of the three arrays (STREAM's count)
  kTriadStreamed,  // the same with stores past the caches
  kExp,            // the engine's exp, elements/s
  kTanh,           // the engine's tanh, elements/s
  kGather,         // rows of 1 KB in random order from 100 MB, bytes/s
};
inline constexpr Roof kRoofs[] = {Roof::kFma, Roof::kBf16, Roof::kTriad, Roof::kTriadStreamed,
                                  Roof::kExp, Roof::kTanh, Roof::kGather};
const char* name(Roof);
const char* unit(Roof);  // of 1e9 a second: "GFLOP/s", "GB/s", "G/s"

class Roofs {
 public:
  explicit Roofs(engine::Parallel parallel);
  ~Roofs();

  // One measurement on every worker, in the roof's unit per second, of a millisecond or more and of
  // at least `seconds`; 0 where the machine has no such instruction. Interrupts and neighbours take
  // their share of what lasts long and miss what is short: a sample beside a run of some length
  // should be as long.
  double sample(Roof, double seconds = 0);
  // The best of several: a roof is what is possible, and disturbances only lower it.
  double best(Roof, int samples = 5);

 private:
  struct Arrays;
  struct Loop {
    double amount = 0;  // what one worker does in a call of the body
    std::function<void(size_t worker)> body;
  };
  Arrays& triad_arrays();
  Arrays& gather_arrays();
  Loop loop(Roof);
  double on_all_workers(const Loop&, size_t times);  // seconds

  engine::Parallel parallel_;
  std::unique_ptr<Arrays> triad_, gather_;
};

// Two 512-bit multiply-add units show as twice the AVX2 roof; a core with one (or one split in
// halves) shows the same.
bool has_two_wide_units(Roofs&);

// Holds the engine and the roofs to one SIMD target ("AVX2", "AVX3", ...) while it lives; "" holds
// nothing. Throws InvalidArgument when the machine or the build has no such target.
class HeldTarget {
 public:
  explicit HeldTarget(const std::string& target);
  ~HeldTarget();
  HeldTarget(const HeldTarget&) = delete;
  HeldTarget& operator=(const HeldTarget&) = delete;
};

}  // namespace fovea::bench
