// What kernels take of a device, as the compiler says it: no device is needed, NVRTC is.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "torch/cuda/fused.h"
#include "torch/cuda/program.h"
#include "torch/cuda/runtime/nvrtc.h"
#include "torch/engine_call.h"

namespace fovea {
namespace {

// A combination, and at most how many bytes a thread of each of its kernels may spill.
struct Row {
  const char* name;
  Choices choices;
  at::ScalarType type;
  int64_t width;
  const char* architecture;
  int forward, backward;
};

std::vector<Row> rows() {
  const at::Tensor slopes = at::tensor({0.1f, 0.2f}), bias = at::zeros({2, 64, 64});
  const Choices window{Dot{}, Softmax{}, Causal{} & Window{512, -1}};
  const Choices alibi{Score(Dot{}).alibi(slopes), Softmax{}, Causal{}},
      biased{Score(Dot{}).bias(bias), Softmax{}, Causal{}},
      points{Kernel{KernelName::kGaussian, at::tensor({0.1f}), {}}, KernelRatio{}, Dense{}};
  return {
      {"window", window, at::kBFloat16, 128, "sm_90a", 0, 128},
      {"window", window, at::kBFloat16, 64, "sm_90a", 0, 0},
      {"window", window, at::kHalf, 32, "sm_80", 0, 0},
      {"ALiBi", alibi, at::kBFloat16, 128, "sm_90a", 96, 32},
      {"bias", biased, at::kBFloat16, 128, "sm_90a", 0, 32},
      {"window", window, at::kFloat, 64, "sm_80", 0, 0},
      {"Gaussian", points, at::kFloat, 3, "sm_90a", 32, 0},
  };
}

int largest(const std::string& log, const std::regex& what) {
  int found = -1;
  for (std::sregex_iterator at(log.begin(), log.end(), what), end; at != end; ++at)
    found = std::max(found, std::stoi((*at)[1]));
  return found;
}

TEST(KernelResources, StayWithinTheirTable) {
  if (!cuda::nvrtc_missing().empty()) GTEST_SKIP() << cuda::nvrtc_missing();
  constexpr unsigned kShared = 227 << 10;  // bytes of a block, compute capability 9.0
  for (const Row& row : rows()) {
    const auto x = at::zeros({1, 2, 64, row.width}, row.type);
    Call given{x, x, x, {}, {}, 0, 7};
    given.choices = row.choices;
    const Call call = canonical(given);
    for (const bool forward : {true, false}) {
      const auto program =
          forward ? cuda::forward_program(call) : cuda::backward_program(call, {1, 1, 1});
      const auto compiled = cuda::compile(program.text, row.architecture);
      ASSERT_FALSE(compiled.binary.empty()) << program.name << "\n" << compiled.log;
      const int registers = largest(compiled.log, std::regex("Used ([0-9]+) registers")),
                spilled = largest(compiled.log, std::regex("([0-9]+) bytes spill stores"));
      const std::string what = program.name + (forward ? ", forward" : ", backward");
      EXPECT_GT(registers, 0) << what << ": no report\n" << compiled.log;
      EXPECT_LE(static_cast<unsigned>(registers) * program.threads, 65536u) << what;
      EXPECT_LE(spilled, forward ? row.forward : row.backward) << what;
      EXPECT_LE(program.shared_bytes, kShared) << what;
    }
  }
}

}  // namespace
}  // namespace fovea
