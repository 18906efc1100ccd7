// The device texts on the host: structures joined by | and ~, and keys and values in pages.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/torch/emulated_device.h"
#include "torch/composed/composed.h"
#include "torch/composed/pages.h"
#include "torch/cuda/fused.h"
#include "torch/engine_call.h"

namespace fovea {
namespace {

// Forward on the emulated device; -7.5 wherever nothing was written.
cuda::Places run(const Call& call) {
  auto sizes = call.query.sizes().vec();
  sizes.back() = call.value.size(-1);
  auto statistics = sizes;
  statistics.back() = 4;
  const auto floats = call.query.options().dtype(arithmetic_type(call.query));
  const cuda::Places places{at::full(sizes, -7.5, call.query.options()),
                            {},
                            at::full(statistics, -7.5, floats),
                            at::full({}, 5, at::kLong)};
  cuda::EmulatedDevice device;
  cuda::forward(device, call, places);
  return places;
}

void expect_near(const at::Tensor& got, const at::Tensor& expected, double bound,
                 const std::string& what) {
  const at::Tensor error = (got.to(at::kDouble) - expected.to(at::kDouble)).abs();
  EXPECT_TRUE((error <= bound).all().item<bool>()) << what << ": " << error.max().item<double>();
}

struct Expression {
  const char* name;
  Structure structure;
};

std::vector<Expression> expressions() {
  const Structure streaming = Causal{} & (Window{20, 0} | First{4});
  const at::Tensor ids = at::arange(150).div(40, "floor").to(at::kInt);
  return {{"streaming", streaming},
          {"documents or first", Documents{ids.slice(0, 0, 140), ids} | First{3}},
          {"nothing", ~Structure(Dense{})},
          {"nested", (Causal{} & ~(Window{5, 0} | First{2})) | Window{0, 0}}};
}

// More than one tile of either side, so that tiles are passed over.
TEST(KernelStructures, JoinedByOrAndNotAreTheComposedFormula) {
  at::manual_seed(2);
  const at::NoGradGuard guard;
  for (const auto& [name, structure] : expressions()) {
    const bool first = name == std::string("streaming");
    for (const bool sparse : {false, true}) {
      if (sparse && !first) continue;  // each is a program to compile
      const auto rows = [](int64_t heads, int64_t length) {
        return at::randn({1, heads, length, 8}, at::kDouble);
      };
      Call given{rows(2, 140), rows(1, 150), rows(1, 150), {}, {}, 0, 7};
      given.choices = {Dot{}, Softmax{}, structure};
      if (sparse) given.choices.normaliser = Sparsemax{};
      const Call call = canonical(given);
      ASSERT_TRUE(cuda::kernels_decline(call).empty()) << name;
      const auto got = run(call);
      const auto truth = composed::attend(call);
      const std::string what = std::string(name) + (sparse ? ", sparsemax" : ", softmax");
      expect_near(got.output, truth.output, 1e-10, what);
      EXPECT_EQ(got.empty_rows.item<int64_t>(), truth.empty_rows.item<int64_t>()) << what;
      const at::Tensor d_output = at::randn_like(got.output);
      size_t arrays = 0;
      Choices copy = call.choices;
      visit_arrays(copy, [&](const char*, at::Tensor&) { ++arrays; });
      std::vector<int64_t> wanted(3 + arrays, 0);
      wanted[0] = wanted[1] = wanted[2] = 1;
      cuda::EmulatedDevice device;
      const auto ours =
          cuda::backward(device, call, d_output, {}, got.output, got.statistics, wanted);
      const auto theirs = composed::backward(call, d_output, {}, wanted);
      for (size_t n = 0; n < 3; ++n) expect_near(ours[n], theirs[n], 1e-9, what + ", gradient");
    }
  }
}

TEST(KernelStructures, AProgramIsNamedAsItsStructureIsWritten) {
  const auto rows = at::zeros({1, 1, 4, 8});
  Call given{rows, rows, rows, {}, {}, 0, 7};
  given.choices = {Dot{}, Softmax{}, Causal{} & (Window{2, 0} | ~First{1})};
  const auto program = cuda::forward_program(canonical(given));
  EXPECT_NE(program.name.find("causal & (window | ~(first))"), std::string::npos) << program.name;
  EXPECT_NE(program.text.find("All<Causal, AnyOf<All<Window>, All<Not<All<First>>>>>"),
            std::string::npos);
}

// A step of decoding: 16-bit pools with NaN where no key is, a table with anything past the keys.
Call paged_step(at::ScalarType type, const Structure& structure, bool heads_first) {
  constexpr int64_t kPage = 16, kPages = 40, kHeads = 2, kWidth = 32;
  const auto integers = at::TensorOptions(at::kInt);
  const std::vector<int> lengths{333, 1, 0, 160};
  at::Tensor table = at::full({4, 21}, -1, integers);
  const at::Tensor order = at::randperm(kPages).to(at::kInt);
  at::Tensor pools[2];
  for (auto& pool : pools) {
    const std::vector<int64_t> sizes = {kPages, heads_first ? kHeads : kPage,
                                        heads_first ? kPage : kHeads, kWidth};
    pool = at::full(sizes, NAN, type);
    if (heads_first) pool = pool.transpose(1, 2);
  }
  int64_t used = 0;
  for (int64_t b = 0; b < 4; ++b) {
    const int64_t keys = lengths[static_cast<size_t>(b)];
    for (int64_t n = 0; n * kPage < keys; ++n, ++used) {
      const int64_t page = order[used].item<int64_t>();
      table[b][n] = page;
      const int64_t count = std::min(kPage, keys - n * kPage);
      for (auto& pool : pools)
        pool[page].slice(0, 0, count).copy_(at::randn({count, kHeads, kWidth}));
    }
  }
  Call given{at::randn({4, 4, 3, kWidth}, type), pools[0], pools[1], {}, {}, 0, 7};
  const Structure pages(Paged{table, at::tensor(lengths, integers)});
  given.choices = {Score(Dot{}).soft_cap(4), Softmax{}, pages & structure};
  return given;
}

TEST(KernelStructures, AStepOfDecodingReadsPagesWhereTheyLie) {
  at::manual_seed(6);
  const at::NoGradGuard guard;
  const Structure bottom(Causal{choice::Alignment::kBottomRight});
  const std::vector<Expression> structures = {{"plain", Structure(Dense{})},
                                              {"bottom right", bottom},
                                              {"streaming", bottom & (Window{40, 0} | First{4})}};
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    for (const bool heads_first : {false, true}) {
      for (const auto& [name, structure] : structures) {
        if (type == at::kHalf && name != std::string("plain")) continue;
        const Call call = canonical(paged_step(type, structure, heads_first));
        ASSERT_TRUE(cuda::kernels_decline(call).empty()) << name;
        ASSERT_TRUE(cuda::forward_program(call).decodes) << name;
        Call wide = composed::out_of_pages(call);
        for (at::Tensor* x : {&wide.query, &wide.key, &wide.value}) *x = x->to(at::kDouble);
        const auto got = run(call);
        const auto truth = composed::attend(wide);
        expect_near(got.output, truth.output, type == at::kHalf ? 0.01 : 0.06, name);
        EXPECT_EQ(got.empty_rows.item<int64_t>(), truth.empty_rows.item<int64_t>()) << name;
      }
    }
  }
}

TEST(KernelStructures, OtherCallsOnPagesSayWhyTheyAreCopiedOut) {
  Call given = paged_step(at::kBFloat16, Structure(Dense{}), false);
  given.query = at::randn({4, 4, 40, 32}, at::kBFloat16);
  EXPECT_EQ(cuda::kernels_decline(canonical(given)),
            std::vector<std::string>{"pages, but for few queries of 16 bits"});
}

}  // namespace
}  // namespace fovea
