#include "torch/composed/random.h"

#include "engine/tiles/random.h"

namespace fovea::composed {
namespace {

constexpr int64_t kLow32 = 0xffffffff;

// x >> n of unsigned 64-bit numbers, which tensors only have as signed ones.
at::Tensor shift_right(const at::Tensor& x, int64_t n) {
  return at::bitwise_right_shift(x, n) & ((int64_t{1} << (64 - n)) - 1);
}

at::Tensor mix(at::Tensor z) {
  z = (z ^ shift_right(z, 30)) * static_cast<int64_t>(0xbf58476d1ce4e5b9u);
  z = (z ^ shift_right(z, 27)) * static_cast<int64_t>(0x94d049bb133111ebu);
  return z ^ shift_right(z, 31);
}

// 32-bit numbers in 64-bit places.
at::Tensor hash(at::Tensor x) {
  x = ((x ^ shift_right(x, 16)) * 0x7feb352d) & kLow32;
  x = ((x ^ shift_right(x, 15)) * 0x846ca68b) & kLow32;
  return x ^ shift_right(x, 16);
}

// engine::random_row of every row, [B, H, l, 1].
at::Tensor random_rows(const Block& block, int64_t heads, uint64_t seed) {
  constexpr auto kGolden = static_cast<int64_t>(0x9e3779b97f4a7c15u);
  const auto options = block.i.options();
  const at::Tensor batch =
      at::arange(block.batch, block.batch + block.batches, options).view({-1, 1, 1, 1});
  const at::Tensor head = at::arange(heads, options).view({1, -1, 1, 1});
  const auto start = static_cast<int64_t>(engine::mix(seed + 0x9e3779b97f4a7c15u));
  return mix((mix((mix(batch ^ start) + kGolden) ^ head) + kGolden) ^ block.position);
}

}  // namespace

at::Tensor dropout_keep(const Block& block, const at::Tensor& like, double dropout_p,
                        uint64_t seed) {
  const at::Tensor row = random_rows(block, like.size(1), seed);
  const at::Tensor pair =
      shift_right(hash(hash((block.j + (row & kLow32)) & kLow32) ^ shift_right(row, 32)), 8);
  return (pair >= static_cast<int64_t>(engine::dropout_threshold(dropout_p)))
      .to(like.scalar_type());
}

at::Tensor row_uniform(const Block& block, const at::Tensor& like, uint64_t seed) {
  return shift_right(mix(random_rows(block, like.size(1), seed)), 11).to(at::kDouble) * 0x1p-53;
}

}  // namespace fovea::composed
