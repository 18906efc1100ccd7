// Signs of life of all ranks, through the store: each rank counts up its own about once a second, and
// reads those of the others. A process that is stopped, or a machine that is off, gives none.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fovea::train {

class Signs {
 public:
  // The store's connection is used by the thread of this object alone. Every rank has given its first
  // sign (`first`) before one of these is made.
  Signs(c10::intrusive_ptr<c10d::Store> store, int rank, int size);
  ~Signs();
  Signs(const Signs&) = delete;
  Signs& operator=(const Signs&) = delete;

  static void first(c10d::Store& store, int rank);
  // Between two signs of a rank, and between two looks at those of `size` ranks.
  static std::chrono::milliseconds pause(int size);
  // A rank that has been quiet for longer has missed a sign.
  static std::chrono::milliseconds late_after(int size) { return pause(size) * 3 / 2; }

  // How often all signs have been read.
  int64_t reads() const;
  // Whether the store has closed the connection.
  bool store_is_gone() const;
  // Seconds between the last new sign of a rank and the last time that signs were read.
  double quiet(int rank) const;

 private:
  using Clock = std::chrono::steady_clock;
  // Shared with the thread, which may be waiting for a store that does not answer when this ends.
  struct Shared {
    mutable std::mutex mutex;
    std::condition_variable changed;
    bool stop = false, ended = false, gone = false;
    int64_t reads = 0;
    Clock::time_point read = Clock::now();
    std::vector<Clock::time_point> fresh;  // when the sign of a rank was last a new one
  };
  static void watch(const std::shared_ptr<Shared>& shared, c10d::Store& store, int rank, int size);

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::thread thread_;
};

}  // namespace fovea::train
