#include "engine/runtime/scratch.h"

#include <algorithm>
#include <mutex>
#include <new>

namespace fovea::engine {
namespace {

constexpr std::align_val_t kAlignment{64};

struct Block {
  std::byte* data;
  size_t size;
};

class Cache {
 public:
  // The smallest block that is large enough and not wastefully so, or an empty one.
  Block take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto best = blocks_.end();
    for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
      if (it->size >= bytes && it->size <= 4 * bytes + 65536 &&
          (best == blocks_.end() || it->size < best->size))
        best = it;
    }
    if (best == blocks_.end()) return {nullptr, 0};
    const Block block = *best;
    blocks_.erase(best);
    kept_ -= block.size;
    return block;
  }

  bool give(Block block) {
    const std::lock_guard lock(mutex_);
    // Make room by dropping the oldest; sizes change when a program moves on to other problems.
    while (!blocks_.empty() &&
           (kept_ + block.size > kScratchKept || blocks_.size() >= kMostBlocks)) {
      kept_ -= blocks_.front().size;
      ::operator delete(blocks_.front().data, kAlignment);
      blocks_.erase(blocks_.begin());
    }
    if (kept_ + block.size > kScratchKept) return false;
    blocks_.push_back(block);
    kept_ += block.size;
    return true;
  }

 private:
  static constexpr size_t kMostBlocks = 256;
  std::mutex mutex_;
  std::vector<Block> blocks_;
  size_t kept_ = 0;
};

// Never destroyed: scratch may be given back by threads that outlive static destruction.
Cache& cache() {
  static Cache* const kCache = new Cache;
  return *kCache;
}

}  // namespace

Scratch::Scratch(size_t bytes) {
  if (bytes == 0) return;
  const Block block = cache().take(bytes);
  if (block.data) {
    data_ = block.data;
    size_ = block.size;
    return;
  }
  size_ = (bytes + 4095) / 4096 * 4096;
  data_ = static_cast<std::byte*>(::operator new(size_, kAlignment));
}

Scratch::~Scratch() {
  if (data_ && !cache().give({data_, size_})) ::operator delete(data_, kAlignment);
}

}  // namespace fovea::engine
