// Threads that sleep between calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "engine/runtime/signal.h"

namespace fovea::engine {

// One call runs at a time; a second caller, or a nested call, runs on its own thread alone.
//
// Pieces of work are taken one by one, by the caller too. The caller waits for pieces that another
// thread has taken, never for a thread: a thread that the system has not run yet finds no piece
// left. So on a busy machine a call waits only for work in progress.
class Pool {
 public:
  // `workers` counts the caller. Threads start when a call first has work for them.
  explicit Pool(size_t workers);
  Pool(const Pool&) = delete;
  ~Pool() { stop(); }

  // body(0) ... body(n - 1). The first exception that one of them throws reaches the caller, after
  // the pieces in progress have ended; pieces that nobody has begun are then left out.
  void run(size_t n, const std::function<void(size_t)>& body);
  // Ends the threads; later calls run on their callers. A call in progress keeps its threads.
  void stop();

 private:
  void start_threads(size_t n);
  void serve();
  bool take(size_t* piece);
  void do_piece(size_t piece);

  const size_t workers_;
  const std::chrono::nanoseconds look_;  // of a thread that waits for a call
  std::vector<std::thread> threads_;
  bool can_start_ = true;
  std::atomic<bool> busy_{false}, stopped_{false};

  // The call in progress. Who has taken a piece may read `body_` and `pieces_`: the call cannot end
  // before the piece has.
  const std::function<void(size_t)>* body_ = nullptr;
  size_t pieces_ = 0;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;     // written by who set failed_, read when every piece has ended
  std::atomic<uint64_t> open_{0};  // number of the call << 32 | pieces nobody has taken
  Signal calls_, done_;            // calls so far; pieces done by threads other than the caller
};

}  // namespace fovea::engine
