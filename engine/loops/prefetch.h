// Rows that will be read soon are prefetched while the products run, a few cache lines for each
// micro-kernel. A core can have some sixteen lines in flight and waits when there are more, so
// prefetching all of them at once would gain nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fovea::engine {

class PrefetchList {
 public:
  void clear() { count_ = at_ = 0; }
  // `rows` rows of `bytes` bytes, `stride` bytes apart.
  void add(const void* data, int64_t stride, size_t rows, size_t bytes) {
    if (rows > 0 && bytes > 0 && count_ < lists_.size())
      lists_[count_++] = {static_cast<const char*>(data), stride, rows, bytes, 0};
  }
  // The next `rows` rows from *data on, *stride bytes apart, of which the first `bytes` bytes are
  // meant. The last block of a list may reach beyond it: prefetching what does not exist does
  // nothing.
  bool next(size_t rows, size_t bytes, const char** data, int64_t* stride) {
    if (at_ == count_) return false;
    List& list = lists_[at_];
    *data = list.data + list.column;
    *stride = list.stride;
    list.column += bytes;
    if (list.column < list.bytes) return true;
    list.column = 0;
    list.data += static_cast<int64_t>(rows) * list.stride;
    if (list.rows <= rows)
      ++at_;
    else
      list.rows -= rows;
    return true;
  }

  // Prefetches the next block itself: for loops that are not products.
  void prefetch_next() {
    constexpr size_t kRows = 6, kBytes = 256;
    const char* data;
    int64_t stride;
    if (!next(kRows, kBytes, &data, &stride)) return;
    for (size_t r = 0; r < kRows; ++r, data += stride)
      for (size_t line = 0; line < kBytes; line += 64) __builtin_prefetch(data + line, 0, 2);
  }

 private:
  struct List {
    const char* data;
    int64_t stride;
    size_t rows, bytes, column;
  };
  std::array<List, 8> lists_;
  size_t count_ = 0, at_ = 0;
};

}  // namespace fovea::engine
