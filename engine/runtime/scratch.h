// Memory that is kept from call to call. Each thread keeps the blocks it gives back, so that a call
// after the first allocates nothing, has no page faults and takes no lock. Blocks are aligned to
// cache lines and not initialised.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace fovea::engine {

// All threads together keep at most this much in blocks of more than kSmallBlock bytes, and each at
// most kSmallKept in smaller ones. A thread that ends leaves its large blocks to the others.
inline constexpr size_t kScratchKept = size_t{512} << 20;
inline constexpr size_t kSmallBlock = size_t{64} << 10, kSmallKept = size_t{1} << 20;

// A block of at least `bytes` bytes; it is given back with the same number, on any thread.
std::byte* take_block(size_t bytes);
void give_block(std::byte* block, size_t bytes) noexcept;

class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(size_t bytes) : data_(bytes ? take_block(bytes) : nullptr), size_(bytes) {}
  Scratch(Scratch&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Scratch() {
    if (data_) give_block(data_, size_);
  }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Lists of a call.
template <class T>
struct ScratchAllocator {
  using value_type = T;
  ScratchAllocator() = default;
  template <class U>
  ScratchAllocator(const ScratchAllocator<U>&) {}
  T* allocate(size_t n) { return reinterpret_cast<T*>(take_block(n * sizeof(T))); }
  void deallocate(T* p, size_t n) noexcept {
    give_block(reinterpret_cast<std::byte*>(p), n * sizeof(T));
  }
  friend bool operator==(const ScratchAllocator&, const ScratchAllocator&) { return true; }
};
template <class T>
using Vector = std::vector<T, ScratchAllocator<T>>;

// What a call makes with `new`, by deriving from this.
struct InScratch {
  static void* operator new(size_t bytes) { return take_block(bytes); }
  static void operator delete(void* p, size_t bytes) {
    give_block(static_cast<std::byte*>(p), bytes);
  }
};

// Places arrays one after another: a first pass without memory adds up the sizes, a second one sets
// the pointers.
class Layout {
 public:
  explicit Layout(std::byte* base = nullptr) : base_(base) {}
  template <class T>
  T* take(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* place = base_ ? reinterpret_cast<T*>(base_ + used_) : nullptr;
    used_ += (n * sizeof(T) + kLine - 1) / kLine * kLine;
    return place;
  }
  size_t size() const { return used_ + kLine; }

 private:
  static constexpr size_t kLine = 64;
  std::byte* base_;
  size_t used_ = 0;
};

// Memory for all arrays that lay(layout) takes; calls it twice, and the second time sets pointers.
template <class Lay>
Scratch lay_out(const Lay& lay) {
  Layout sizes;
  lay(sizes);
  Scratch memory(sizes.size());
  Layout layout(memory.data());
  lay(layout);
  return memory;
}

// An array of T in scratch.
template <class T>
class ScratchArray {
 public:
  ScratchArray() = default;
  explicit ScratchArray(size_t n) : scratch_(n * sizeof(T)) {}
  T* data() const { return reinterpret_cast<T*>(scratch_.data()); }
  T& operator[](size_t i) const { return data()[i]; }

 private:
  Scratch scratch_;
};

}  // namespace fovea::engine
