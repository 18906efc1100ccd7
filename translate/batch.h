// Sentences as padded tensors. The source ends with EOS; the decoder reads BOS y1 ... yT and must
// predict y1 ... yT EOS.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <span>
#include <vector>

#include "translate/codec.h"

namespace fovea::translate {

struct Batch {
  at::Tensor source;  // int64 [B, S]
  at::Tensor
      source_lengths;     // int32 [B], EOS counted; on the host, where nothing has to wait for them
  at::Tensor target_in;   // int64 [B, T]
  at::Tensor target_out;  // int64 [B, T], PAD where a target has ended
  int64_t target_tokens = 0;  // real ones in target_out
};

// A pair in tokens.
struct Tokens {
  Encoded source, target;
};

// Of the longer side, its end counted: what batches of like length go by.
std::vector<int64_t> lengths_of(const std::vector<Tokens>& tokens);
std::vector<const Tokens*> chosen_of(const std::vector<Tokens>& tokens,
                                     std::span<const int64_t> rows);
Batch make_batch(const std::vector<const Tokens*>& items, c10::Device device);
// Sources alone: target_in and target_out stay undefined.
Batch make_sources(const std::vector<const Encoded*>& sources, c10::Device device);

// Sum over real target tokens of the cross-entropy with targets smoothed to (1 - eps) + eps / Y'
// (Y': all classes but PAD), divided by their number; `plain` is the same without smoothing,
// detached.
struct TokenLoss {
  at::Tensor smoothed, plain;
};
TokenLoss token_loss(const at::Tensor& logits, const Batch& batch, double smoothing);

}  // namespace fovea::translate
