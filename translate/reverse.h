// Sequences read from their end; padding stays where it is.
#pragma once

#include <ATen/ATen.h>

namespace fovea::translate {

// The position each place of tokens [B, S] comes from: len-1 ... 0, then the padding as it was.
// int64 [B, S].
inline at::Tensor reversed_positions(const at::Tensor& tokens, const at::Tensor& lengths) {
  const at::Tensor place = at::arange(tokens.size(1), tokens.options()).unsqueeze(0);
  const at::Tensor mirrored =
      lengths.to(tokens.options(), /*non_blocking=*/true).unsqueeze(1) - 1 - place;
  return at::where(mirrored.ge(0), mirrored, place.expand_as(mirrored));
}

// tokens [B, S].
inline at::Tensor reversed(const at::Tensor& tokens, const at::Tensor& lengths) {
  return tokens.gather(1, reversed_positions(tokens, lengths));
}

}  // namespace fovea::translate
