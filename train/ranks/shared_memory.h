// Memory that all ranks of one machine see, so that what they add up need not travel. Each rank has a
// region. Ranks wait for each other in it too, which costs a few switches of a process, where a message
// of Gloo costs dozens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/ranks/ranks.h"

namespace fovea::train {

// Bytes that a processor reads at once: what is written by different ranks begins at such places.
constexpr int64_t kLine = 64;

class SharedMemory {
 public:
  // Called by all ranks, and the same on all. No memory where they are not on one machine, or one of them
  // may not see another's, or has FOVEA_SHARE_MEMORY=0.
  struct Tried;
  static Tried of(Ranks& ranks, size_t bytes);
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
  // Of all ranks. Refused: this rank does not see all of them.
  struct Refused {
    std::string why = {};  // empty where nothing else was to be expected
  };
  std::optional<Refused> see(const std::vector<std::string>& invitations);
  // The region of a rank that is on this machine. Throws Refused.
  std::byte* region_at(const std::string& its_name, int pid, int file);
  Meeting& meeting() const;
  bool one_has_ended() const;

  Ranks& ranks_;
  const size_t bytes_;  // of a region with its head
  int own_file_ = -1;
  std::vector<std::byte*> regions_;  // with their heads
  std::vector<int> processes_;       // descriptors of the other ranks' processes
};

struct SharedMemory::Tried {
  std::unique_ptr<SharedMemory> memory;
  std::string why_not = {};  // where ranks of one machine were refused; for the user
};

}  // namespace fovea::train
