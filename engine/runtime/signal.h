// A number that threads wait on: they spin for a few microseconds, then sleep until they are woken.
// Spinning alone would take a core from the thread that is to change the number, if there are more
// threads than cores. Sleeping alone would cost a wake-up even if the change comes soon.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace fovea::engine {

class Signal {
 public:
  // About the cost of a wake-up, so that a wait never costs more than twice the better choice.
  static constexpr std::chrono::microseconds kLook{10};

  uint32_t get() const { return value_.load(std::memory_order_acquire); }
  // Without waking anyone: for when nobody can be waiting.
  void reset(uint32_t value) { value_.store(value); }
  // These stores are sequentially consistent, as the sleepers' steps are: either a sleeper sees the
  // new number, or this thread sees the sleeper.
  // Sets bits and leaves the others.
  void raise(uint32_t bits) {
    value_.fetch_or(bits);
    wake(SIZE_MAX);
  }
  void add_one(size_t wake_at_most = SIZE_MAX) {
    value_.fetch_add(1);
    wake(wake_at_most);
  }

  // Returns the first number that is_ready says yes to.
  template <class IsReady>
  uint32_t wait(const IsReady& is_ready, std::chrono::nanoseconds look = kLook) const {
    if (const uint32_t now = get(); is_ready(now)) return now;
    const auto until = std::chrono::steady_clock::now() + look;
    do {
      for (int i = 0; i < 16; ++i) {
        if (const uint32_t now = get(); is_ready(now)) return now;
        relax();
      }
    } while (std::chrono::steady_clock::now() < until);
    sleepers_.fetch_add(1);
    uint32_t now = value_.load();
    for (; !is_ready(now); now = value_.load()) value_.wait(now);
    sleepers_.fetch_sub(1);
    return now;
  }

 private:
  static void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  void wake(size_t at_most) {
    const size_t sleepers = sleepers_.load();
    if (sleepers == 0) return;
    if (sleepers <= at_most) return value_.notify_all();
    for (size_t i = 0; i < at_most; ++i) value_.notify_one();
  }

  std::atomic<uint32_t> value_{0};
  mutable std::atomic<uint32_t> sleepers_{0};
};

}  // namespace fovea::engine
