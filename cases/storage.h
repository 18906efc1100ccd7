// Memory a case owns, filled from a seeded generator that gives the same numbers on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "fovea/engine.h"

namespace fovea::cases {

class Storage {
 public:
  explicit Storage(uint64_t seed) : random_(seed) {}

  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  int64_t integer(int64_t low, int64_t high) {  // both included
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

  // Zeroed, contiguous; a view of no elements still has an address.
  engine::View zeros(engine::DType dtype, std::initializer_list<int64_t> size);
  engine::View zeros_like(const engine::View&, engine::DType dtype);
  engine::View floats(engine::DType dtype, std::initializer_list<int64_t> size, double low,
                      double high);
  engine::View values(engine::DType dtype, const std::vector<double>& values);  // rank 1
  // Elements of a view, counted in row-major order.
  template <class Function>
  static void each(const engine::View& view, Function function) {
    std::array<int64_t, 4> at{};
    int64_t count = 1;
    for (int d = 0; d < view.rank; ++d) count *= view.size[d];
    for (; count > 0; --count) {
      int64_t offset = 0;
      for (int d = 0; d < view.rank; ++d) offset += at[d] * view.stride[d];
      function(offset);
      for (int d = view.rank - 1; d >= 0 && ++at[d] == view.size[d]; --d) at[d] = 0;
    }
  }
  static void set(const engine::View&, int64_t offset, double value);
  static double get(const engine::View&, int64_t offset);
  // A batched [B, H, L, E] or packed (total, H, E) view with the heads inside the sequence, rows
  // padded by NaN, and an odd offset; see Layout::kStrided.
  engine::View interleaved(engine::DType dtype, int64_t batch, int64_t heads, int64_t length,
                           int64_t width);
  engine::View interleaved_packed(engine::DType dtype, int64_t total, int64_t heads, int64_t width);

 private:
  void* allocate(size_t bytes);

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

}  // namespace fovea::cases
