#include "engine/runtime/parallel.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <mutex>

#if defined(__unix__)
#include <pthread.h>
#endif

#include "engine/runtime/cores.h"
#include "engine/runtime/pool.h"

namespace fovea::engine {
namespace {

size_t worker_count() {
  const size_t asked = threads_asked_for(std::getenv("FOVEA_THREADS"));
  return asked ? asked : usable_cores();
}

// The process's pool. Never destroyed, since other threads may call while statics are; but its
// threads end with the program, or with the library that holds us when that is closed.
std::atomic<Pool*> the_pool{nullptr};

Pool& pool() {
  Pool* now = the_pool.load();
  if (now) return *now;
  Pool* const made = new Pool(worker_count());
  if (the_pool.compare_exchange_strong(now, made)) return *made;
  delete made;
  return *now;
}

struct StopAtExit {
  ~StopAtExit() {
    if (Pool* now = the_pool.load()) now->stop();
  }
};

// A child has none of the threads of the process it was forked from: it gets a pool of its own when
// it first calls. The old one, perhaps in the middle of a call, is left as it is.
void forget_threads_in_children() {
#if defined(__unix__)
  pthread_atfork(nullptr, nullptr, [] { the_pool.store(nullptr); });
#endif
}

}  // namespace

Parallel worth(const Parallel& given, double work) {
  if (given.workers <= 1 || work < 2.0 * kGrain) return {};
  const double most = work / kGrain;
  const size_t workers =
      most < static_cast<double>(given.workers) ? static_cast<size_t>(most) : given.workers;
  Parallel parallel{.workers = workers, .run = {}};
  if (given.run) parallel.run = std::cref(given.run);
  return parallel;
}

size_t slots(const Parallel& parallel, size_t tickets) {
  return std::max<size_t>(1, std::min(parallel.workers, tickets));
}

void hand_out(const Parallel& parallel, size_t tickets,
              const std::function<void(size_t, size_t)>& body,
              const std::function<void()>& give_up) {
  const size_t workers = slots(parallel, tickets);
  if (workers == 1 || !parallel.run) {
    for (size_t ticket = 0; ticket < tickets; ++ticket) body(0, ticket);
    return;
  }
  std::atomic<size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto take_tickets = [&](size_t worker) {
    try {
      for (size_t ticket; (ticket = next.fetch_add(1)) < tickets;) body(worker, ticket);
    } catch (...) {
      {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
      next.store(tickets);
      give_up();
    }
  };
  parallel.run(workers, std::cref(take_tickets));
  if (error) std::rethrow_exception(error);
}

const Parallel& default_parallel() {
  static const Parallel* const kParallel = [] {
    forget_threads_in_children();
    static const StopAtExit kStop;
    return new Parallel{
        .workers = worker_count(),
        .run = [](size_t n, const std::function<void(size_t)>& body) { pool().run(n, body); }};
  }();
  return *kParallel;
}

}  // namespace fovea::engine
