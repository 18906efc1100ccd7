#include "engine/runtime/pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#if defined(__unix__)
#include <pthread.h>
#include <signal.h>
#endif

#include "engine/runtime/cores.h"

namespace fovea::engine {
namespace {

constexpr uint64_t kPieces = 0xffffffff;

// Signals of the program are for its own threads.
class SignalsBlocked {
#if defined(__unix__)
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
#endif
};

}  // namespace

// With more threads than cores, a thread that spins takes the core from one that has work.
Pool::Pool(size_t workers)
    : workers_(workers), look_(workers <= usable_cores() ? Signal::kLook : Signal::kLook * 0) {}

void Pool::start_threads(size_t n) {
  if (threads_.size() >= n || !can_start_) return;
  const SignalsBlocked blocked;
  try {
    while (threads_.size() < n) threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error&) {
    can_start_ = false;  // the system starts no more threads: those that run do the work
  }
}

void Pool::run(size_t n, const std::function<void(size_t)>& body) {
  bool idle = false;
  const size_t helpers = std::min(n, workers_) - std::min<size_t>(n, 1);
  if (helpers == 0 || n > kPieces || !busy_.compare_exchange_strong(idle, true)) {
    for (size_t i = 0; i < n; ++i) body(i);
    return;
  }
  start_threads(helpers);
  body_ = &body;
  pieces_ = n;
  failed_.store(false);
  done_.reset(0);
  open_.store((uint64_t{calls_.get()} + 1) << 32 | n);
  calls_.add_one(helpers);
  size_t by_caller = 0;
  for (size_t piece; take(&piece); ++by_caller) do_piece(piece);
  const auto others = static_cast<uint32_t>(n - by_caller);
  done_.wait([&](uint32_t done) { return done == others; });
  const std::exception_ptr failure = failed_.load() ? std::move(failure_) : nullptr;
  busy_.store(false);
  if (failure) std::rethrow_exception(failure);
}

void Pool::do_piece(size_t piece) {
  if (failed_.load(std::memory_order_relaxed)) return;
  try {
    (*body_)(piece);
  } catch (...) {
    if (!failed_.exchange(true)) failure_ = std::current_exception();
  }
}

bool Pool::take(size_t* piece) {
  uint64_t open = open_.load();
  while ((open & kPieces) != 0) {
    if (!open_.compare_exchange_weak(open, open - 1)) continue;
    *piece = pieces_ - (open & kPieces);
    return true;
  }
  return false;
}

void Pool::serve() {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "fovea");
#endif
  uint32_t seen = 0;
  while (!stopped_.load()) {
    for (size_t piece; take(&piece);) {
      do_piece(piece);
      done_.add_one();
    }
    seen = calls_.wait([&](uint32_t calls) { return calls != seen; }, look_);
  }
}

void Pool::stop() {
  if (busy_.exchange(true)) return;
  stopped_.store(true);
  calls_.add_one();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace fovea::engine
