// A contiguous array in one scalar type, copied from a view of any: what the equations are written
// on.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fovea/engine.h"

namespace fovea::reference {

// The element of a view at a flat index that counts in memory order of its strides.
double element(const engine::View& view, int64_t offset);

template <class T>
struct Tensor {
  int rank = 0;
  std::array<int64_t, 4> size{};
  std::vector<T> data;

  Tensor() = default;
  explicit Tensor(const engine::View& view) : rank(view.rank), size(view.size) {
    if (!view) return;
    data.reserve(count());
    std::array<int64_t, 4> at{};
    for (int64_t n = count(); n > 0; --n) {
      int64_t offset = 0;
      for (int d = 0; d < rank; ++d) offset += at[d] * view.stride[d];
      data.push_back(static_cast<T>(element(view, offset)));
      for (int d = rank - 1; d >= 0 && ++at[d] == size[d]; --d) at[d] = 0;
    }
  }
  static Tensor zeros_like(const Tensor& other) {
    Tensor zeros;
    zeros.rank = other.rank;
    zeros.size = other.size;
    zeros.data.assign(other.data.size(), T(0));
    return zeros;
  }

  explicit operator bool() const { return rank > 0; }
  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= size[d];
    return n;
  }
  // The row that starts at the given indices, the last dimension running.
  T* row(int64_t a) { return data.data() + a * size[rank - 1]; }
  const T* row(int64_t a) const { return data.data() + a * size[rank - 1]; }

  // The element that [a, b, c, d] meets when this array is broadcast, aligned to the right.
  int64_t broadcast(int64_t a, int64_t b, int64_t c, int64_t d) const {
    const std::array<int64_t, 4> at{a, b, c, d};
    int64_t offset = 0;
    for (int r = 0; r < rank; ++r) {
      const int64_t index = at[4 - rank + r];
      offset = offset * size[r] + (size[r] == 1 ? 0 : index);
    }
    return offset;
  }
};

}  // namespace fovea::reference
