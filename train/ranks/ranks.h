// Several processes that train together, on one machine or on many: libtorch's c10d with Gloo. Every
// wait says what for, and ends when another rank has ended or gives no sign of life any more.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "train/ranks/place.h"
#include "train/ranks/rank_lost.h"

namespace fovea::train {

class Ranks {
 public:
  // Waits until all ranks are there. `timeout` is in seconds: a rank that has given no sign of life for
  // so long is lost.
  Ranks(const Place& place, double timeout);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const;
  int size() const;
  bool first() const { return rank() == 0; }
  // "rank 1 (process 4242 on node7)".
  const std::string& name_of(int rank) const;

  // Each is called by all ranks, in the same order. `what` is what a waiting rank is said to wait for.
  // What rank 0 gives.
  std::string broadcast(std::string_view bytes, const std::string& what);
  // What each rank gives, on every rank.
  std::vector<std::string> gather(std::string_view own, const std::string& what);

  // A transfer that goes on while the caller computes. It keeps its tensors.
  class Transfer;
  using Started = std::shared_ptr<Transfer>;
  // Of `in`, `sent[r]` numbers go to rank r; `out` holds `received[r]` of rank r.
  Started exchange(at::Tensor out, std::vector<int64_t> received, at::Tensor in,
                   std::vector<int64_t> sent);
  // `out` holds every rank's `in`, one after the other.
  Started gather(at::Tensor out, at::Tensor in);
  // Every rank's `numbers` become their sum, added in whatever order is fast.
  Started sum(at::Tensor numbers);
  void wait(const Started& transfer, const std::string& what);

  // Waits for something else: `look` waits for it, for so long at most, and says whether it is over, or
  // not yet, or never will be.
  enum class Waited : uint8_t { kOver, kOn, kLost };
  void wait_until(const std::function<Waited(std::chrono::milliseconds most)>& look,
                  const std::string& what);

  // Says to the others why this rank ends.
  void leave(const std::string& why) noexcept;

 private:
  struct Group;
  std::unique_ptr<Group> group_;
};

}  // namespace fovea::train
