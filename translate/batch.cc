#include "translate/batch.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace fovea::translate {
namespace {

at::Tensor padded(const std::vector<std::vector<int64_t>>& rows, c10::Device device) {
  size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.size());
  at::Tensor out =
      at::full({static_cast<int64_t>(rows.size()), static_cast<int64_t>(width)}, kPad, at::kLong);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), out.mutable_data_ptr<int64_t>() + i * width);
  return out.to(device,
                /*non_blocking=*/true);  // pageable memory is copied before the call returns
}

}  // namespace

Batch make_sources(const std::vector<const Encoded*>& sources, c10::Device device) {
  std::vector<std::vector<int64_t>> rows;
  std::vector<int32_t> lengths;
  for (const Encoded* source : sources) {
    rows.push_back(source->ids);
    rows.back().push_back(kEnd);
    lengths.push_back(static_cast<int32_t>(rows.back().size()));
  }
  Batch batch;
  batch.source = padded(rows, device);
  batch.source_lengths = at::tensor(lengths, at::kInt);
  return batch;
}

std::vector<int64_t> lengths_of(const std::vector<Tokens>& tokens) {
  std::vector<int64_t> lengths;
  for (const Tokens& t : tokens)
    lengths.push_back(static_cast<int64_t>(std::max(t.source.ids.size(), t.target.ids.size())) + 1);
  return lengths;
}

std::vector<const Tokens*> chosen_of(const std::vector<Tokens>& tokens,
                                     std::span<const int64_t> rows) {
  std::vector<const Tokens*> out;
  for (const int64_t i : rows) out.push_back(&tokens[static_cast<size_t>(i)]);
  return out;
}

Batch make_batch(const std::vector<const Tokens*>& items, c10::Device device) {
  std::vector<const Encoded*> sources;
  std::vector<std::vector<int64_t>> in, out;
  int64_t tokens = 0;
  for (const Tokens* item : items) {
    sources.push_back(&item->source);
    in.push_back({kBegin});
    in.back().insert(in.back().end(), item->target.ids.begin(), item->target.ids.end());
    out.push_back(item->target.ids);
    out.back().push_back(kEnd);
    tokens += static_cast<int64_t>(out.back().size());
  }
  Batch batch = make_sources(sources, device);
  batch.target_tokens = tokens;
  batch.target_in = padded(in, device);
  batch.target_out = padded(out, device);
  return batch;
}

TokenLoss token_loss(const at::Tensor& logits, const Batch& batch, double smoothing) {
  const int64_t classes = logits.size(-1);
  const at::Tensor log_probability = at::log_softmax(logits.reshape({-1, classes}), -1, at::kFloat);
  const at::Tensor flat = batch.target_out.reshape({-1});
  const auto count = static_cast<double>(std::max<int64_t>(batch.target_tokens, 1));
  const at::Tensor nll = at::nll_loss(log_probability, flat, {}, at::Reduction::Sum, kPad) / count;
  TokenLoss loss{nll, nll.detach()};
  if (smoothing > 0) {
    const at::Tensor others = log_probability.sum(-1) - log_probability.select(1, kPad);
    const at::Tensor spread =
        -(others * flat.ne(kPad)).sum() / (count * static_cast<double>(classes - 1));
    loss.smoothed = (1 - smoothing) * nll + smoothing * spread;
  }
  return loss;
}

}  // namespace fovea::translate
