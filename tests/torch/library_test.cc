#include <gtest/gtest.h>
#include <torch/torch.h>

#include <mutex>
#include <set>
#include <thread>

TEST(Build, OperatorsRegisterWhenTheLibraryIsLoaded) {
  const auto found = c10::Dispatcher::singleton().findSchema({"fovea::simd_target", ""});
  EXPECT_TRUE(found.has_value());
}

// at::parallel_for silently runs on one thread where the build forgot OpenMP.
TEST(Build, LibtorchLendsItsThreads) {
#ifndef INTRA_OP_PARALLEL
  GTEST_SKIP() << "compiled without OpenMP: attend runs on the engine's own threads";
#endif
  at::set_num_threads(2);
  std::set<std::thread::id> seen;
  std::mutex lock;
  at::parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    std::lock_guard guard(lock);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen.size(), 2u);
}
