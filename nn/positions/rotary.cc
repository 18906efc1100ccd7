#include "fovea/nn/rotary.h"

#include <ATen/ATen.h>

#include <cmath>

#include "fovea/error.h"

namespace fovea::nn {

at::Tensor rotary(const at::Tensor& x, int64_t first, double base) {
  if (x.dim() < 2 || x.size(-1) % 2 != 0)
    throw InvalidArgument("x: a width of " + (x.dim() < 1 ? "none" : std::to_string(x.size(-1))) +
                          ", expected [..., L, E] with an even E");
  const int64_t half = x.size(-1) / 2;
  const auto wide = at::TensorOptions().dtype(at::kDouble).device(x.device());
  const at::Tensor rate =
      at::exp(at::arange(half, wide) * (-std::log(base) / static_cast<double>(half)));
  const at::Tensor angle = at::outer(at::arange(first, first + x.size(-2), wide), rate);
  const at::Tensor cosine = at::cos(angle).to(x.scalar_type()),
                   sine = at::sin(angle).to(x.scalar_type());
  const at::Tensor pairs = x.unflatten(-1, {half, 2});
  const at::Tensor a = pairs.select(-1, 0), b = pairs.select(-1, 1);
  return at::stack({a * cosine - b * sine, a * sine + b * cosine}, -1).flatten(-2);
}

}  // namespace fovea::nn
