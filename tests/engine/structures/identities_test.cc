// Structures that are one another under another name.
#include <gtest/gtest.h>

#include "tests/engine/identity.h"

namespace fovea {
namespace {

using cases::Built;
using cases::Case;
using cases::Storage;
using engine::DType;
using engine::View;

// Another structure for the same pairs, for every normaliser.
void expect_same_structure(const char* structure,
                           const std::function<engine::Structure(Built&)>& make) {
  for (const auto& normaliser : cases::normalisers()) {
    expect_identity({.normaliser = normaliser.name, .structure = {structure}, .shape = kShape},
                    [&](Built& b) { b.problem.structure = make(b); });
  }
}

TEST(Identities, StructuresThatKeepTheSamePairs) {
  expect_same_structure("dense", [](Built&) { return engine::Window{100, 100}; });
  expect_same_structure("dense", [](Built&) { return engine::Window{-1, -1}; });
  expect_same_structure("dense", [](Built&) { return engine::Structure{}; });
  expect_same_structure("dense", [](Built&) { return engine::Prefix{35}; });
  expect_same_structure("dense", [](Built& b) {
    return engine::Keep{filled(b.storage, {1, 1}, DType::kBool, 1)};
  });
  expect_same_structure("dense", [](Built& b) {
    return engine::Blocks{filled(b.storage, {1, 1, 5, 9}, DType::kBool, 1), 4};
  });
  expect_same_structure("dense", [](Built& b) {
    return engine::Documents{filled(b.storage, {19}, DType::kInt32, 4),
                             filled(b.storage, {35}, DType::kInt32, 4)};
  });
  expect_same_structure("causal", [](Built&) { return engine::Window{-1, 0}; });
  expect_same_structure("causal", [](Built&) { return engine::Prefix{0}; });
  expect_same_structure("causal", [](Built&) { return engine::Strided{1}; });
  expect_same_structure("causal", [](Built&) { return engine::Fixed{64, 0}; });
  expect_same_structure("causal", [](Built&) { return engine::Fixed{3, 3}; });
  expect_same_structure("causal", [](Built&) {
    return engine::Structure(engine::Causal{}) & engine::Structure(engine::Dense{});
  });
  expect_same_structure("causal", [](Built&) { return ~~engine::Structure(engine::Causal{}); });
  expect_same_structure("causal", [](Built&) {
    return ~engine::Window{-1, -1} | engine::Causal{};
  });
  expect_same_structure("prefix",
                        [](Built&) { return engine::Causal{} | engine::First{(35 + 2) / 3}; });
  // De Morgan.
  expect_same_structure("streaming", [](Built&) {
    return ~(~engine::Structure(engine::Causal{}) |
             (~engine::Window{35 / 5, 0} & ~engine::First{2}));
  });
  expect_same_structure("streaming", [](Built&) {
    return (engine::Causal{} & engine::Window{35 / 5, 0}) | (engine::Causal{} & engine::First{2});
  });
  // Bottom right is an offset: the same pairs, and the same draws.
  expect_same_structure("causal_bottom_right", [](Built& b) {
    b.problem.query_offset = 35 - 19;
    return engine::Causal{};
  });
  expect_same_structure("causal_bottom_right", [](Built& b) {
    b.problem.query_offset = 35 - 19;
    return engine::Window{-1, 0};
  });
}

TEST(Identities, AnAndOfTwoStructuresKeepsWhatBothKeep) {
  using engine::Causal, engine::Structure, engine::Window;
  const Window window{.left = 4, .right = 9};
  const Structure list = [&] {
    Structure both;
    both.all_of = {Causal{}, window};
    return both;
  }();
  const Window past{.left = 4, .right = 0};  // the same pairs in one
  for (const Structure& both :
       {Causal{} & window, Structure(Causal{}) & window, Causal{} & Structure(window),
        Structure(Causal{}) & Structure(window), window & window & Causal{}}) {
    EXPECT_GE(both.all_of.size(), 2u);
    for (const Structure& same : {list, Structure(past)}) {
      Built one = cases::build({.shape = kShape}), other = cases::build({.shape = kShape});
      one.problem.structure = both;
      other.problem.structure = same;
      expect_same(run_forward(one).output, run_forward(other).output, kClose, "output");
    }
  }
}

TEST(Identities, KeyLengthsAreAKeepMask) {
  for (const char* normaliser : {"softmax", "sparsemax", "uniform", "unnormalised"}) {
    expect_identity({.normaliser = normaliser, .structure = {"window"}, .shape = kShape},
                    [](Built&) {});
    const Case c{
        .normaliser = normaliser, .structure = {"window"}, .shape = kShape, .key_lengths = true};
    expect_identity(c, [](Built& b) {
      const Numbers lengths = numbers(b.problem.key_lengths);
      const View mask = b.storage.zeros(DType::kBool, {2, 1, 1, 35});
      int64_t n = 0;
      Storage::each(mask, [&](int64_t at) {
        Storage::set(mask, at, static_cast<double>(n % 35) < lengths[n / 35]);
        ++n;
      });
      b.problem.key_lengths = {};
      b.problem.structure = b.problem.structure & engine::Structure(engine::Keep{mask});
    });
  }
}

// [1, H, N, E] as packed (N, H, E), same memory.
View packed(const View& view) {
  View p = view;
  p.rank = 3;
  p.size = {view.size[2], view.size[1], view.size[3], 0};
  p.stride = {view.stride[2], view.stride[1], view.stride[3], 0};
  return p;
}
void pack(Built& b) {
  for (View* view :
       {&b.problem.query, &b.problem.key, &b.problem.value, &b.result.output, &b.result.statistics,
        &b.gradients.output, &b.gradients.query, &b.gradients.key, &b.gradients.value}) {
    *view = packed(*view);
  }
  for (View* view : {&b.result.lse, &b.gradients.lse}) {
    if (!*view) continue;
    view->rank = 2;
    view->size = {view->size[2], view->size[1], 0, 0};
    view->stride = {view->stride[2], view->stride[1], 0, 0};
  }
}
// Numbers of packed arrays come in another order.
void expect_packed_identity(const Case& c, const Change& change) {
  SCOPED_TRACE(c.name());
  Built plain = cases::build(c), other = cases::build(c);
  pack(other);
  change(other);
  run_backward(plain);
  run_backward(other);
  expect_same(numbers(other.result.output), numbers(packed(plain.result.output)), kClose, "output");
  expect_same(numbers(other.gradients.query), numbers(packed(plain.gradients.query)), 2 * kClose,
              "dq");
  expect_same(numbers(other.gradients.key), numbers(packed(plain.gradients.key)), 2 * kClose, "dk");
  expect_same(numbers(other.gradients.value), numbers(packed(plain.gradients.value)), 2 * kClose,
              "dv");
}

TEST(Identities, ACompleteGraphIsDenseAndSoIsOneRaggedSequence) {
  for (const auto& score : cases::scores()) {
    for (const auto& normaliser : cases::normalisers()) {
      if (score.name == "kernel_silverman" && normaliser.name != "kernel_ratio") continue;
      const Case c{
          .score = score.name, .normaliser = normaliser.name, .shape = {1, 2, 1, 6, 9, 4, 3}};
      expect_packed_identity(c, [](Built& b) {
        Numbers rows = {0}, columns;
        for (int i = 0; i < 6; ++i) {
          for (int j = 0; j < 9; ++j) columns.push_back(j);
          rows.push_back(9 * (i + 1));
        }
        b.problem.structure = engine::Graph{b.storage.values(DType::kInt32, rows),
                                            b.storage.values(DType::kInt32, columns)};
      });
      expect_packed_identity(c, [](Built& b) {
        b.problem.structure = engine::Ragged{b.storage.values(DType::kInt32, {0, 6}),
                                             b.storage.values(DType::kInt32, {0, 9})};
      });
    }
  }
}

}  // namespace
}  // namespace fovea
