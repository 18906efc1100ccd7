// Handing out work in a fixed order: ticket t is taken before ticket t + 1 by whichever worker is
// free.
#pragma once

#include <cstddef>
#include <functional>

#include "engine/runtime/signal.h"
#include "fovea/engine.h"

namespace fovea::engine {

// Calls body(worker, ticket) for every ticket; worker < workers is the caller's slot for scratch. A
// body may wait for work of a lower ticket: whoever holds that one is running. After an exception
// no further ticket is handed out, and give_up() is called, which must end every such wait. The
// first exception is rethrown when all have stopped.
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

// Multiply-adds that are worth a worker. Handing a part of a call to a thread that looks for work
// costs some ten microseconds, to one that sleeps several times that; these take twenty or so, and
// two workers begin to be faster at twice as many (bench/short_calls, table grain: 0.80 of one
// worker's time at 2^20, 0.64 at 2^21).
inline constexpr size_t kGrain = size_t{1} << 19;

// At most a worker for each kGrain of `work`: a small call runs on its caller alone, and waits for
// nobody. `given` outlives what is returned.
Parallel worth(const Parallel& given, double work);

// How many slots run_tickets may use.
size_t slots(const Parallel& parallel, size_t tickets);

// Whose turn it is to add to a sum that several tickets share; numbers stay below 2^31.
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
