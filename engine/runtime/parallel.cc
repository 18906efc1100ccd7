#include "engine/runtime/parallel.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <sched.h>
#include <thread>
#include <vector>

namespace fovea::engine {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Threads that sleep between calls. One call runs at a time; a second caller, or a call from
// inside, runs on its own thread.
class Pool {
 public:
  explicit Pool(size_t workers) {
    for (size_t i = 1; i < workers; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    generation_.fetch_add(1);
    generation_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void run(size_t n, const std::function<void(size_t)>& body) {
    bool idle = false;
    if (n <= 1 || threads_.empty() || !busy_.compare_exchange_strong(idle, true)) {
      for (size_t i = 0; i < n; ++i) body(i);
      return;
    }
    body_ = &body;
    size_ = n;
    next_.store(0);
    left_.store(threads_.size());
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    while (left_.load(std::memory_order_acquire) != 0) relax();
    busy_.store(false);
    if (error) std::rethrow_exception(error);
  }

 private:
  void work() {
    for (size_t i; (i = next_.fetch_add(1)) < size_;) (*body_)(i);
  }
  void serve() {
    unsigned seen = 0;
    for (;;) {
      for (int spins = 0; generation_.load(std::memory_order_acquire) == seen; ++spins) {
        if (spins < kSpins)
          relax();
        else
          generation_.wait(seen);
      }
      ++seen;
      if (stop_) return;
      work();  // run_tickets' bodies do not throw
      left_.fetch_sub(1, std::memory_order_release);
    }
  }

  static constexpr int kSpins =
      2000;  // some tens of microseconds: consecutive calls find the threads awake
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::atomic<unsigned> generation_{0};
  std::atomic<bool> busy_{false};
  bool stop_ = false;
  const std::function<void(size_t)>* body_ = nullptr;
  size_t size_ = 0;
  std::atomic<size_t> next_{0}, left_{0};
};

size_t usable_cores() {
  if (const char* text = std::getenv("FOVEA_THREADS")) {
    const long n = std::strtol(text, nullptr, 10);
    if (n > 0) return static_cast<size_t>(n);
  }
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<size_t>(std::max(1, CPU_COUNT(&set)));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

void Turn::pause(int spins) {
  if (spins < 4000)
    relax();
  else
    std::this_thread::yield();
}

size_t slots(const Parallel& parallel, size_t tickets) {
  return std::max<size_t>(1, std::min(parallel.workers, tickets));
}

void run_tickets(const Parallel& parallel, size_t tickets,
                 const std::function<void(size_t, size_t)>& body) {
  const size_t workers = slots(parallel, tickets);
  if (workers == 1 || !parallel.run) {
    for (size_t ticket = 0; ticket < tickets; ++ticket) body(0, ticket);
    return;
  }
  std::atomic<size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  parallel.run(workers, [&](size_t worker) {
    try {
      for (size_t ticket; (ticket = next.fetch_add(1)) < tickets;) body(worker, ticket);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

const Parallel& default_parallel() {
  static const size_t kWorkers = usable_cores();
  static Pool pool(kWorkers);
  static const Parallel kParallel{
      .workers = kWorkers,
      .run = [](size_t n, const std::function<void(size_t)>& body) { pool.run(n, body); }};
  return kParallel;
}

}  // namespace fovea::engine
