#include "torch/composed/random.h"

namespace fovea::composed {
namespace {

// x >> n of unsigned 64-bit numbers, which tensors only have as signed ones.
at::Tensor shift_right(const at::Tensor& x, int64_t n) {
  return at::bitwise_right_shift(x, n) & ((int64_t{1} << (64 - n)) - 1);
}

// The finaliser of splitmix64 (Steele, Lea & Flood 2014).
at::Tensor mix(at::Tensor x) {
  x = (x ^ shift_right(x, 30)) * static_cast<int64_t>(0xbf58476d1ce4e5b9u);
  x = (x ^ shift_right(x, 27)) * static_cast<int64_t>(0x94d049bb133111ebu);
  return x ^ shift_right(x, 31);
}

// Uniform on [0, 1), one number for each (stream, batch, head, query, key).
at::Tensor uniform(const Block& block, const at::Tensor& like, uint64_t seed, int64_t stream) {
  const auto options = block.i.options();
  const at::Tensor batch =
      at::arange(block.batch, block.batch + block.batches, options).view({-1, 1, 1, 1});
  const at::Tensor head = at::arange(like.size(1), options).view({1, -1, 1, 1});
  at::Tensor x = mix(batch * (int64_t{1} << 32) + head + static_cast<int64_t>(seed) + stream);
  x = mix(x + block.i);
  x = mix(x + block.j);
  return shift_right(x, 40).to(like.scalar_type()) * (1.0 / (1 << 24));
}

}  // namespace

at::Tensor dropout_keep(const Block& block, const at::Tensor& like, double dropout_p,
                        uint64_t seed) {
  return (uniform(block, like, seed, 0) >= dropout_p).to(like.scalar_type());
}

at::Tensor gumbel(const Block& block, const at::Tensor& like, uint64_t seed) {
  return -(-(uniform(block, like, seed, 1) + 0x1p-25).log()).log();
}

}  // namespace fovea::composed
