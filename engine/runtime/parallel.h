// Handing out work in a fixed order: ticket t is taken before ticket t + 1 by whichever worker is
// free.
#pragma once

#include <cstddef>
#include <functional>

#include "engine/runtime/signal.h"
#include "fovea/engine.h"

namespace fovea::engine {

// Calls body(worker, ticket) for every ticket; worker < workers is the caller's slot for scratch. A
// body may wait for work of a lower ticket: whoever holds that one is running. The first exception
// is rethrown when all have stopped.
void hand_out(const Parallel& parallel, size_t tickets,
              const std::function<void(size_t worker, size_t ticket)>& body);
// The same for any function object, without the memory that a copy of it would take.
template <class Body>
void run_tickets(const Parallel& parallel, size_t tickets, const Body& body) {
  hand_out(parallel, tickets, std::cref(body));
}

// How many slots run_tickets may use.
size_t slots(const Parallel& parallel, size_t tickets);

// Whose turn it is to add to a sum that several tickets share.
class Turn {
 public:
  void wait_for(size_t value) const {
    next_.wait([&](uint32_t now) { return now == static_cast<uint32_t>(value); });
  }
  void pass_to(size_t value) { next_.set(static_cast<uint32_t>(value)); }

 private:
  Signal next_;
};

}  // namespace fovea::engine
