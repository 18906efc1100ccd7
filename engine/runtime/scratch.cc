#include "engine/runtime/scratch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>

#if defined(__unix__)
#include <pthread.h>
#endif

namespace fovea::engine {
namespace {

constexpr std::align_val_t kAlignment{64};

// Blocks come in four sizes to each power of two, from 64 bytes on: at most a quarter is wasted, and
// one of the same size is always right.
constexpr size_t kSizes = 4 * 42, kLargestBlock = size_t{1} << 47;

struct Size {
  size_t index, bytes;
};
Size size_for(size_t wanted) {
  const size_t n = std::max<size_t>(wanted, 64) - 1;
  const auto octave = static_cast<size_t>(std::bit_width(n));  // 2^(octave - 1) <= n < 2^octave
  const size_t quarter = n >> (octave - 3) & 3;
  return {(octave - 6) * 4 + quarter, (quarter + 5) << (octave - 3)};
}

std::byte* allocate(size_t bytes) {
  return static_cast<std::byte*>(::operator new(bytes, kAlignment));
}
void release(std::byte* block) noexcept { ::operator delete(block, kAlignment); }

// Blocks that wait, by size: each holds the address of the next.
class Shelf {
 public:
  std::byte* take(Size size) {
    std::byte* const block = first_[size.index];
    if (block) first_[size.index] = next(block);
    return block;
  }
  void put(Size size, std::byte* block) {
    next(block) = first_[size.index];
    first_[size.index] = block;
  }
  // visit(size, block) for each, which leaves the shelf.
  template <class Visit>
  void clear(const Visit& visit) {
    for (size_t i = 0; i < kSizes; ++i) {
      const Size size{i, (i % 4 + 5) << (i / 4 + 3)};
      while (std::byte* const block = take(size)) visit(size, block);
    }
  }

 private:
  static std::byte*& next(std::byte* block) { return *reinterpret_cast<std::byte**>(block); }
  std::array<std::byte*, kSizes> first_{};
};

std::atomic<size_t> large_kept{0};  // bytes on all shelves in large blocks

bool is_large(Size size) { return size.bytes > kSmallBlock; }

// Whether one more large block stays within the limit of their sum. If so, it is counted.
bool reserve(size_t bytes) {
  size_t kept = large_kept.load(std::memory_order_relaxed);
  while (kept + bytes <= kScratchKept) {
    if (large_kept.compare_exchange_weak(kept, kept + bytes)) return true;
  }
  return false;
}

// Large blocks of threads that have ended, for threads that have none of the size. Never destroyed:
// threads may outlive static destruction. A child process after a fork has its own, because another
// thread of the parent may have been using this one.
struct Shared {
  std::mutex mutex;
  Shelf shelf;
};
std::atomic<Shared*> shared{nullptr};

Shared& shared_shelf() {
#if defined(__unix__)
  static const int registered = pthread_atfork(nullptr, nullptr, [] { shared.store(nullptr); });
  (void)registered;
#endif
  Shared* now = shared.load();
  if (now) return *now;
  Shared* const made = new Shared;
  if (shared.compare_exchange_strong(now, made)) return *made;
  delete made;
  return *now;
}

// One for each thread. Other thread-local objects may use it before it is made and after it would be
// destroyed, so it has no destructor: `at_end` does that work.
struct Own {
  Shelf shelf;
  size_t small_kept = 0;
  bool ends = false, ended = false;
};
constinit thread_local Own own;

void release_all(Own& mine) {
  mine.shelf.clear([](Size size, std::byte* block) {
    if (is_large(size)) large_kept -= size.bytes;
    release(block);
  });
  mine.small_kept = 0;
}

struct AtEnd {
  ~AtEnd() {
    own.ended = true;
    Shared& others = shared_shelf();
    const std::lock_guard lock(others.mutex);
    own.shelf.clear([&](Size size, std::byte* block) {
      if (is_large(size))
        others.shelf.put(size, block);
      else
        release(block);
    });
  }
};
thread_local AtEnd at_end;

}  // namespace

std::byte* take_block(size_t bytes) {
  if (bytes > kLargestBlock) throw std::bad_alloc();
  const Size size = size_for(bytes);
  Own& mine = own;
  std::byte* block = mine.shelf.take(size);
  if (!is_large(size)) {
    if (!block) return allocate(size.bytes);
    mine.small_kept -= size.bytes;
    return block;
  }
  if (!block && large_kept.load(std::memory_order_relaxed) > 0) {
    Shared& others = shared_shelf();
    const std::lock_guard lock(others.mutex);
    block = others.shelf.take(size);
  }
  if (!block) return allocate(size.bytes);
  large_kept -= size.bytes;
  return block;
}

void give_block(std::byte* block, size_t bytes) noexcept {
  const Size size = size_for(bytes);
  Own& mine = own;
  if (mine.ended) return release(block);
  if (!mine.ends) {
    mine.ends = true;
    (void)&at_end;  // has the destructor called when the thread ends
  }
  const auto has_room = [&] {
    return is_large(size) ? reserve(size.bytes) : mine.small_kept + size.bytes <= kSmallKept;
  };
  // A program that now has other shapes holds blocks that it no longer needs: these are freed first.
  if (!has_room()) {
    release_all(mine);
    if (!has_room()) return release(block);
  }
  if (!is_large(size)) mine.small_kept += size.bytes;
  mine.shelf.put(size, block);
}

}  // namespace fovea::engine
