// Rotary positions (Su et al. 2021): the numbers 2i and 2i + 1 of a row are a point of the plane,
// rotated by position · base^(-2i/E). So the product of a query and a key depends on the distance
// of their positions only.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace fovea::nn {

// x [..., L, E], E even; row r has position `first` + r. When decoding with a cache, `first` is the
// number of rows before x.
at::Tensor rotary(const at::Tensor& x, int64_t first = 0, double base = 10000);

}  // namespace fovea::nn
