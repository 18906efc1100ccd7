#include "bench/roofs/roof.h"

#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "bench/roofs/kernels.h"
#include "bench/timing.h"
#include "engine/simd/hold.h"

namespace fovea::bench {
namespace {

// Loops of about a millisecond on a core of this decade: long against a thread's start, short
// against a round.
constexpr size_t kFmaRounds = 200'000;
constexpr size_t kFunctionValues = 2048, kFunctionRounds = 1000;
// Three arrays of 128 MB: past any cache but the largest servers', whose share for two cores is
// smaller than this.
constexpr size_t kTriadValues = 32 << 20;
constexpr size_t kGatherRows = 100'000, kGatherWidth = 256, kGatherPicks = 1 << 16;

// Highway's choice is a library's own: the engine in libfovea.so has one, a program that links
// these roofs another (or the same, where it links the engine alone).
void follow_engine() {
  const std::string chosen = engine::simd_target();
  for (int64_t rest = HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    if (hwy::TargetName(target) == chosen) return hwy::SetSupportedTargetsForTest(target);
  }
}

void discard(float value) {
  volatile float sink = value;
  (void)sink;
}

}  // namespace

const char* name(Roof roof) {
  switch (roof) {
    case Roof::kFma:
      return "fma";
    case Roof::kBf16:
      return "bf16";
    case Roof::kTriad:
      return "triad";
    case Roof::kTriadStreamed:
      return "triad_streamed";
    case Roof::kExp:
      return "exp";
    case Roof::kTanh:
      return "tanh";
    case Roof::kGather:
      return "gather";
  }
  return "";
}

const char* unit(Roof roof) {
  switch (roof) {
    case Roof::kFma:
    case Roof::kBf16:
      return "GFLOP/s";
    case Roof::kTriad:
    case Roof::kTriadStreamed:
    case Roof::kGather:
      return "GB/s";
    case Roof::kExp:
    case Roof::kTanh:
      return "G/s";
  }
  return "";
}

struct Roofs::Arrays {
  std::vector<float> a, b, c;
  std::vector<int32_t> index;
  static float* aligned(std::vector<float>& v) {
    const auto address = reinterpret_cast<uintptr_t>(v.data());
    return v.data() + (64 - address % 64) % 64 / sizeof(float);
  }
};

Roofs::Roofs(engine::Parallel parallel) : parallel_(std::move(parallel)) {}
Roofs::~Roofs() = default;

Roofs::Arrays& Roofs::triad_arrays() {
  if (!triad_) {
    triad_ = std::make_unique<Arrays>();
    for (auto* array : {&triad_->a, &triad_->b, &triad_->c}) array->assign(kTriadValues + 16, 1.0f);
  }
  return *triad_;
}

Roofs::Arrays& Roofs::gather_arrays() {
  if (!gather_) {
    gather_ = std::make_unique<Arrays>();
    gather_->a.assign(kGatherRows * kGatherWidth + 16, 1.0f);
    gather_->index.resize(kGatherRows * 7);
    std::mt19937 generator(1);
    for (int32_t& i : gather_->index) i = static_cast<int32_t>(generator() % kGatherRows);
  }
  return *gather_;
}

double Roofs::on_all_workers(const Loop& loop, size_t times) {
  const double start = seconds_now();
  parallel_.run(parallel_.workers, [&](size_t worker) {
    for (size_t i = 0; i < times; ++i) loop.body(worker);
  });
  return seconds_now() - start;
}

Roofs::Loop Roofs::loop(Roof roof) {
  const RoofKernels& kernels = roof_kernels();
  const size_t workers = parallel_.workers;
  // Arguments of exp and tanh as attention has them: a few units either side of zero.
  static const std::vector<float> arguments = [] {
    std::vector<float> x(kFunctionValues);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = -4.0f + 8.0f * static_cast<float>(i) / kFunctionValues;
    return x;
  }();
  switch (roof) {
    case Roof::kFma:
      return {2.0 * kFmaRounds * kFmaChains * static_cast<double>(kernels.lanes),
              [&kernels](size_t) { discard(kernels.fma(kFmaRounds)); }};
    case Roof::kBf16: {
      const Bf16Unit& bf16 = bf16_unit();
      return bf16.run == nullptr ? Loop{} : Loop{bf16.flops, [&bf16](size_t) { bf16.run(); }};
    }
    case Roof::kExp:
    case Roof::kTanh: {
      const auto function = roof == Roof::kExp ? kernels.exponential : kernels.tanh;
      return {1.0 * kFunctionValues * kFunctionRounds, [function](size_t) {
                discard(function(arguments.data(), kFunctionValues, kFunctionRounds));
              }};
    }
    case Roof::kTriad:
    case Roof::kTriadStreamed: {
      Arrays& arrays = triad_arrays();
      const auto triad = roof == Roof::kTriad ? kernels.triad : kernels.triad_streamed;
      const size_t share = kTriadValues / workers / 16 * 16;
      return {3.0 * sizeof(float) * static_cast<double>(share), [=, &arrays](size_t worker) {
                const size_t at = worker * share;
                triad(Arrays::aligned(arrays.a) + at, Arrays::aligned(arrays.b) + at,
                      Arrays::aligned(arrays.c) + at, share);
              }};
    }
    case Roof::kGather: {
      Arrays& arrays = gather_arrays();
      const size_t share = kGatherPicks / workers;
      return {sizeof(float) * kGatherWidth * static_cast<double>(share),
              [=, &arrays, &kernels](size_t worker) {
                discard(kernels.gather(Arrays::aligned(arrays.a), kGatherWidth,
                                       arrays.index.data() + worker * share, share));
              }};
    }
  }
  return {};
}

double Roofs::sample(Roof roof, double seconds) {
  const Loop work = loop(roof);
  if (!work.body) return 0.0;
  double times = 1, taken = on_all_workers(work, 1);
  // Again where the first was held up by another program, and so promised too much.
  while (taken < 0.9 * seconds) {
    times = std::ceil(times * seconds / taken);
    taken = on_all_workers(work, static_cast<size_t>(times));
  }
  return times * work.amount * static_cast<double>(parallel_.workers) / taken;
}

double Roofs::best(Roof roof, int samples) {
  sample(roof);  // first touch of the arrays, clocks up
  double most = 0;
  for (int i = 0; i < samples; ++i) most = std::max(most, sample(roof));
  return most;
}

bool has_two_wide_units(Roofs& roofs) {
  if (std::string(engine::simd_target()) != "AVX3") return false;
  const double wide = roofs.best(Roof::kFma);
  const HeldTarget held("AVX2");
  return wide > 1.5 * roofs.best(Roof::kFma);
}

HeldTarget::HeldTarget(const std::string& target) {
  if (!target.empty()) engine::hold_simd_target(target.c_str());
  follow_engine();
}

HeldTarget::~HeldTarget() {
  engine::hold_simd_target(nullptr);
  follow_engine();
}

}  // namespace fovea::bench
