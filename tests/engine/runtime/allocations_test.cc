// Memory of a call: none new once the scratch is warm, and what is kept is bounded. Every operator
// new of this program is counted, on all threads.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "cases/cases.h"
#include "engine/runtime/scratch.h"
#include "fovea/engine.h"

namespace {
std::atomic<long> allocations{0}, blocks{0};

void* counted(size_t bytes, size_t alignment) {
  ++allocations;
  ++blocks;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  if (void* p = std::aligned_alloc(alignment, bytes ? bytes : alignment)) return p;
  throw std::bad_alloc();
}
void freed(void* p) noexcept {
  if (p) --blocks;
  std::free(p);
}
}  // namespace

void* operator new(size_t bytes) { return counted(bytes, 16); }
void* operator new(size_t bytes, std::align_val_t a) {
  return counted(bytes, static_cast<size_t>(a));
}
void operator delete(void* p) noexcept { freed(p); }
void operator delete(void* p, size_t) noexcept { freed(p); }
void operator delete(void* p, std::align_val_t) noexcept { freed(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { freed(p); }

namespace fovea {
namespace {

using cases::Case;

// On one thread, one piece after another: which thread a piece falls to is chance, and a thread has
// its scratch from its own first piece on.
const engine::Parallel kAlone, kInTurn{3, [](size_t n, const std::function<void(size_t)>&body) {
                                         for (size_t i = 0; i < n; ++i) body(i);
                                       }};

// Of one call after a few others of the same kind.
template <class Call>
long allocations_of(const Call& call) {
  for (int i = 0; i < 3; ++i) call();
  const long before = allocations;
  call();
  return allocations - before;
}

void expect_none_forward(const Case& c) {
  cases::Built built = cases::build(c);
  engine::Result inference = built.result;
  inference.statistics = {};
  for (const engine::Parallel* parallel : {&kAlone, &kInTurn}) {
    for (const engine::Result* result : {&built.result, &inference}) {
      EXPECT_EQ(allocations_of([&] { engine::forward(built.problem, *result, *parallel); }), 0)
          << c.name() << ", " << parallel->workers << " workers";
    }
  }
}

void expect_none_backward(const Case& c) {
  cases::Built built = cases::build(c);
  engine::forward(built.problem, built.result, kAlone);
  for (const engine::Parallel* parallel : {&kAlone, &kInTurn}) {
    EXPECT_EQ(allocations_of([&] {
                engine::backward(built.problem, built.result, built.gradients, *parallel);
              }),
              0)
        << c.name() << ", " << parallel->workers << " workers";
  }
}

std::vector<Case> every_choice(const cases::Shape& shape) {
  std::vector<Case> all;
  for (const auto& row : cases::scores())
    all.push_back({.score = row.name,
                   .normaliser = row.kind == "kernel" ? "kernel_ratio" : "softmax",
                   .shape = shape});
  for (const auto& row : cases::modifiers())
    all.push_back({.modifiers = {row.name}, .shape = shape});
  for (const auto& row : cases::normalisers())
    all.push_back({.normaliser = row.name, .shape = shape});
  for (const auto& row : cases::structures())
    all.push_back({.structure = {row.name}, .shape = shape});
  return all;
}

TEST(WarmCall, OfDotAndSoftmaxAllocatesNothing) {
  for (const char* structure : {"dense", "causal", "window"}) {
    for (const auto dtype : {engine::DType::kFloat32, engine::DType::kFloat64,
                             engine::DType::kBFloat16, engine::DType::kFloat16}) {
      for (const cases::Shape& shape : {cases::Shape{1, 8, 8, 1, 1, 64, 64},
                                        {1, 8, 8, 5, 5, 64, 64},
                                        {2, 8, 8, 70, 70, 32, 32},
                                        {1, 2, 2, 600, 600, 16, 16},
                                        {1, 8, 8, 1, 300, 64, 64},
                                        {1, 8, 2, 1, 3000, 32, 32}})
        expect_none_forward({.structure = {structure}, .shape = shape, .dtype = dtype});
    }
  }
}

// The pool's threads take nothing new either, once they have run.
TEST(WarmCall, OnThePoolAllocatesNothing) {
  cases::Built built =
      cases::build({.structure = {"causal"}, .shape = {4, 8, 8, 200, 200, 32, 32}});
  const auto calls = [&](int n) {
    for (int i = 0; i < n; ++i)
      engine::forward(built.problem, built.result, engine::default_parallel());
  };
  calls(20);
  const long before = allocations;
  calls(20);
  EXPECT_EQ(allocations - before, 0);
}

TEST(WarmCall, OfAnyChoiceAllocatesNothingForward) {
  for (const Case& c : every_choice({2, 4, 2, 70, 90, 16, 12})) expect_none_forward(c);
}

TEST(WarmCall, OfAnyChoiceAllocatesNothingBackward) {
  for (const Case& c : every_choice({2, 4, 2, 70, 90, 16, 12})) expect_none_backward(c);
}

TEST(Scratch, ComesBackToWhoGaveIt) {
  for (const size_t bytes : {1, 64, 65, 1000, 5000, 70000, 1 << 20}) {
    std::byte* const first = engine::take_block(bytes);
    std::byte* const second = engine::take_block(bytes);
    EXPECT_NE(first, second);
    engine::give_block(first, bytes);
    EXPECT_EQ(engine::take_block(bytes), first) << bytes;
    engine::give_block(first, bytes);
    engine::give_block(second, bytes);
  }
}

TEST(Scratch, OfAThreadThatEndsServesTheOthers) {
  constexpr size_t kBytes = (size_t{3} << 20) + 77;  // of no other test
  std::byte* block = nullptr;
  long kept = 0;
  std::thread([&] {
    const long before = blocks;
    block = engine::take_block(kBytes);
    for (int i = 0; i < 100; ++i) engine::give_block(engine::take_block(100), 100);
    engine::give_block(block, kBytes);
    kept = blocks - before;
  }).join();
  EXPECT_EQ(kept, 2) << "a small and a large one";
  EXPECT_EQ(engine::take_block(kBytes), block);
  engine::give_block(block, kBytes);
}

TEST(Scratch, IsBounded) {
  const long before = blocks;
  std::vector<std::byte*> all;
  all.reserve(3000);
  for (int i = 0; i < 3000; ++i) all.push_back(engine::take_block(1000));
  for (std::byte* block : all) engine::give_block(block, 1000);
  EXPECT_LE(blocks - before - 1, static_cast<long>(engine::kSmallKept / 1000));
  constexpr size_t kBytes = size_t{100} << 20;
  all.clear();
  for (int i = 0; i < 8; ++i) all.push_back(engine::take_block(kBytes));
  const long held = blocks;
  for (std::byte* block : all) engine::give_block(block, kBytes);
  EXPECT_LE(blocks - (held - 8), static_cast<long>(engine::kScratchKept / kBytes));
}

}  // namespace
}  // namespace fovea
