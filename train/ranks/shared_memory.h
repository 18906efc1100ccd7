// Memory that all ranks of one machine see, so that what they add up need not travel. Each rank has a
// region. Ranks wait for each other in it too, which costs a few switches of a process, where a message
// of Gloo costs dozens.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "train/ranks/ranks.h"

namespace fovea::train {

class SharedMemory {
 public:
  // Called by all ranks. Null, on all alike, where they are not on one machine, or one of them may not
  // see another's memory, or has FOVEA_SHARE_MEMORY=0.
  static std::unique_ptr<SharedMemory> of(Ranks& ranks, size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // `bytes` bytes of a rank, zero at first, at an address that vectors can be read from.
  std::byte* region(int rank) const;
  // Waits until all ranks are here. What each wrote before, all read afterwards. `what` is what a rank
  // is said to wait for.
  void meet(const std::string& what);

 private:
  struct Meeting;
  SharedMemory(Ranks& ranks, size_t bytes);
  // What another rank needs to see this one's region.
  std::string invitation() const;
  // Of all ranks. False: this rank may not see all of them.
  bool see(const std::vector<std::string>& invitations);
  Meeting& meeting() const;
  bool one_has_ended() const;

  Ranks& ranks_;
  const size_t bytes_;  // of a region with its head
  int own_file_ = -1;
  std::vector<std::byte*> regions_;  // with their heads
  std::vector<int> processes_;       // descriptors of the other ranks' processes
};

}  // namespace fovea::train
