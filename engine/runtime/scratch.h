// Scratch memory: taken from a process-wide cache and given back, so that a call after the first
// neither allocates nor faults pages in. Blocks are aligned to cache lines and not initialised.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace fovea::engine {

// The cache keeps at most this much for later calls.
inline constexpr size_t kScratchKept = size_t{512} << 20;

class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(size_t bytes);
  Scratch(Scratch&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Scratch();
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Lays arrays one after another: a first pass with no memory adds up the sizes, a second hands out
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

// Memory for all that lay(layout) takes, with the pointers it keeps pointing there: calls it twice.
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
