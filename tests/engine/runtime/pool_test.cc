// The engine's own threads: every piece once, and a new pool after fork.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "engine/runtime/pool.h"
#include "fovea/engine.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using engine::Pool;

// More workers than the machine has cores, before anything asks for them.
constexpr size_t kWorkers = 8;
[[maybe_unused]] const int kAsked = setenv("FOVEA_THREADS", "8", 1);

TEST(Pool, RunsEveryPieceOnce) {
  Pool pool(kWorkers);
  for (const size_t pieces : {0, 1, 2, 7, 8, 9, 1000}) {
    std::vector<std::atomic<int>> runs(pieces);
    pool.run(pieces, [&](size_t i) { ++runs[i]; });
    EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](const auto& n) { return n == 1; }))
        << pieces << " pieces";
  }
}

TEST(Pool, ServesCallsFromInsideAndFromOtherThreads) {
  Pool pool(kWorkers);
  std::atomic<size_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int call = 0; call < 50; ++call)
        pool.run(4, [&](size_t) { pool.run(3, [&](size_t i) { sum += i; }); });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4u * 50 * 4 * 3);
}

// On whichever thread: a piece that throws must neither end the program nor leave the pool busy.
TEST(Pool, AnExceptionOfAnyPieceReachesTheCaller) {
  Pool pool(kWorkers);
  for (size_t failing = 0; failing < 64; ++failing) {
    try {
      pool.run(64, [&](size_t piece) {
        if (piece == failing) throw std::runtime_error(std::to_string(piece));
      });
      ADD_FAILURE() << "piece " << failing << " failed and nobody heard of it";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), std::to_string(failing));
    }
  }
  std::atomic<size_t> done{0};
  pool.run(64, [&](size_t) { ++done; });
  EXPECT_EQ(done, 64u);
}

TEST(Pool, OneOfManyExceptionsReachesTheCaller) {
  Pool pool(kWorkers);
  for (int call = 0; call < 200; ++call)
    EXPECT_THROW(pool.run(16, [](size_t) { throw std::runtime_error("each"); }),
                 std::runtime_error);
}

TEST(Pool, RunsOnItsCallerOnceStopped) {
  Pool pool(kWorkers);
  pool.run(8, [](size_t) {});
  pool.stop();
  size_t pieces = 0;
  pool.run(8, [&](size_t) { ++pieces; });
  EXPECT_EQ(pieces, 8u);
}

// One row against many keys, a few hundred microseconds of work.
cases::Built decode() { return cases::build({.shape = {1, 8, 8, 1, 4096, 64, 64}}); }

#if !defined(__SANITIZE_THREAD__)  // which has no threads after a fork
// Runs `work` in a child, which is given a minute; true when it returned true and the child ended.
bool in_child(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
#if defined(__SANITIZE_ADDRESS__)
    std::_Exit(work() ? 0
                      : 1);  // at exit the parent's pool, which is left as it was, would be a leak
#else
    std::exit(work() ? 0 : 1);  // statics are destroyed: the pool's threads too
#endif
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

bool gives(cases::Built& built, const Numbers& expected) {
  engine::forward(built.problem, built.result, engine::default_parallel());
  const Numbers got = numbers(built.result.output);
  return got.size() == expected.size() &&
         std::memcmp(got.data(), expected.data(), got.size() * sizeof(double)) == 0;
}

class Fork : public testing::Test {
  void SetUp() override {
#if defined(FOVEA_EMULATED)
    GTEST_SKIP() << "qemu-user aborts where a forked child starts a thread";
#endif
  }
};

TEST_F(Fork, AChildHasThreadsOfItsOwn) {
  cases::Built built = decode();
  engine::forward(built.problem, built.result, engine::default_parallel());
  const Numbers expected = numbers(built.result.output);
  EXPECT_TRUE(in_child(
      [&] { return gives(built, expected) && in_child([&] { return gives(built, expected); }); }));
  EXPECT_TRUE(gives(built, expected)) << "the parent's own";
}

TEST_F(Fork, WhileAnotherThreadCallsLeavesTheChildUsable) {
  cases::Built mine = decode(), others = decode();
  engine::forward(mine.problem, mine.result, engine::default_parallel());
  const Numbers expected = numbers(mine.result.output);
  std::atomic<bool> stop{false};
  std::thread caller([&] {
    while (!stop) engine::forward(others.problem, others.result, engine::default_parallel());
  });
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(in_child([&] { return gives(mine, expected); })) << "child " << i;
  stop = true;
  caller.join();
}
#endif

}  // namespace
}  // namespace fovea
