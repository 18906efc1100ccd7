// Sequences read from their end; padding stays where it is.
#pragma once

#include <ATen/ATen.h>

namespace fovea::translate {

// The position each place comes from: len-1 ... 0, then the padding as it was. int64 [B, S].
inline at::Tensor reversed_positions(int64_t width, const at::Tensor& lengths) {
  const at::Tensor place = at::arange(width, lengths.device()).unsqueeze(0);
  const at::Tensor mirrored = lengths.to(at::kLong).unsqueeze(1) - 1 - place;
  return at::where(mirrored.ge(0), mirrored, place.expand_as(mirrored));
}

// tokens [B, S].
inline at::Tensor reversed(const at::Tensor& tokens, const at::Tensor& lengths) {
  return tokens.gather(1, reversed_positions(tokens.size(1), lengths));
}

}  // namespace fovea::translate
