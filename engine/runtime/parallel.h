// Handing out work in a fixed order: ticket t is taken before ticket t + 1 by whichever worker is
// free.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

#include "fovea/engine.h"

namespace fovea::engine {

// Calls body(worker, ticket) for every ticket; worker < workers is the caller's slot for scratch. A
// body may wait for work of a lower ticket: whoever holds that one is running. The first exception
// is rethrown when all have stopped.
void run_tickets(const Parallel& parallel, size_t tickets,
                 const std::function<void(size_t worker, size_t ticket)>& body);

// How many slots run_tickets may use.
size_t slots(const Parallel& parallel, size_t tickets);

// Spins, then yields: for waits that are short when every worker has a core, and still end when it
// has not.
class Turn {
 public:
  void wait_for(int value) const {
    for (int spins = 0; next_.load(std::memory_order_acquire) != value; ++spins) pause(spins);
  }
  void pass_to(int value) { next_.store(value, std::memory_order_release); }

 private:
  static void pause(int spins);
  std::atomic<int> next_{0};
};

}  // namespace fovea::engine
