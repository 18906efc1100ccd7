// Work is handed out as numbered tickets, in order: a free worker takes ticket t before ticket
// t + 1.
#pragma once

#include <cstddef>
#include <functional>

#include "engine/runtime/signal.h"
#include "fovea/engine.h"

namespace fovea::engine {

// Calls body(worker, ticket) for every ticket; worker < workers selects the scratch memory. A body
// may wait for work of a lower ticket, because that one is already running. After an exception no
// further ticket is handed out, and give_up() is called, which must end every such wait. The first
// exception is rethrown when all workers have stopped.
void hand_out(const Parallel& parallel, size_t tickets,
              const std::function<void(size_t worker, size_t ticket)>& body,
              const std::function<void()>& give_up);
// The same for any function objects, without the memory that a copy of them would take.
template <class Body, class GiveUp>
void run_tickets(const Parallel& parallel, size_t tickets, const Body& body,
                 const GiveUp& give_up) {
  hand_out(parallel, tickets, std::cref(body), std::cref(give_up));
}
// For bodies that wait for nothing.
template <class Body>
void run_tickets(const Parallel& parallel, size_t tickets, const Body& body) {
  run_tickets(parallel, tickets, body, [] {});
}

// The least multiply-adds for each worker. Handing work to a thread that spins costs some ten
// microseconds, to one that sleeps several times that. This many multiply-adds take some twenty, and
// two workers begin to be faster at twice as many (bench/short_calls, table grain: 0.80 of one
// worker's time at 2^20, 0.64 at 2^21).
inline constexpr size_t kGrain = size_t{1} << 19;

// At most one worker for each kGrain of `work`: a small call runs on the calling thread alone.
// `given` must outlive the result.
Parallel worth(const Parallel& given, double work);

// How many slots run_tickets may use.
size_t slots(const Parallel& parallel, size_t tickets);

// Which ticket may add next to a sum that several tickets share; numbers stay below 2^31.
class Turn {
 public:
  // What wait_for throws when a ticket whose turn comes before has failed. hand_out has that one's
  // exception by then, so that nobody outside sees this.
  struct GivenUp {};

  // Before anyone waits.
  void start_at(size_t number) { next_.reset(static_cast<uint32_t>(number)); }
  void wait_for(size_t number) const {
    const uint32_t got = next_.wait(
        [&](uint32_t now) { return now >= kGivenUp || now == static_cast<uint32_t>(number); });
    if (got >= kGivenUp) throw GivenUp();
  }
  // By whose turn it is.
  void pass_on() { next_.add_one(); }
  // By anyone: there are no more turns.
  void give_up() { next_.raise(kGivenUp); }

 private:
  static constexpr uint32_t kGivenUp = uint32_t{1} << 31;
  Signal next_;
};

}  // namespace fovea::engine
