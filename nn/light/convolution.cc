#include "fovea/nn/convolution.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "nn/light/convolve.h"
#include "nn/positive.h"
#include "nn/products/product.h"

namespace fovea::nn {
namespace {

void check(const ConvolutionOptions& o) {
  check_positive("width", o.width);
  check_positive("heads", o.heads);
  check_positive("kernel", o.kernel);
  if (o.width % o.heads != 0)
    throw InvalidArgument("heads: " + std::to_string(o.heads) +
                          ", expected a divisor of the width " + std::to_string(o.width));
  if (o.reach == Reach::kBoth && o.kernel % 2 == 0)
    throw InvalidArgument("kernel: " + std::to_string(o.kernel) +
                          ", expected an odd number where it reaches both ways");
  if (!(o.dropout >= 0 && o.dropout < 1))
    throw InvalidArgument("dropout: " + std::to_string(o.dropout) + ", expected 0 <= p < 1");
}

// Lengths where x is. A GPU need not have finished what it was given before.
at::Tensor moved(const at::Tensor& lengths, const at::Tensor& x) {
  return lengths.to(at::kLong).to(x.device(), /*non_blocking=*/true);
}

// True at positions [B, L, 1] before their sequence's end.
at::Tensor real_positions(const at::Tensor& lengths, const at::Tensor& x) {
  const at::Tensor position = at::arange(x.size(1), at::TensorOptions(x.device()).dtype(at::kLong));
  return position.unsqueeze(0).lt(moved(lengths, x).unsqueeze(1)).unsqueeze(-1);
}

}  // namespace

ConvolutionImpl::ConvolutionImpl(const ConvolutionOptions& options) : options_(options) {
  check(options);
  reset();
}

void ConvolutionImpl::reset() {
  const ConvolutionOptions& o = options_;
  linear1 = register_module("linear1", torch::nn::Linear(o.width, 2 * o.width));
  if (o.kernels == Kernels::kLight) {
    weight = register_parameter("weight", at::empty({o.heads, o.kernel}));
  } else {
    weight_linear = register_module(
        "weight_linear",
        torch::nn::Linear(torch::nn::LinearOptions(o.width, o.heads * o.kernel).bias(false)));
  }
  linear2 = register_module("linear2", torch::nn::Linear(o.width, o.width));
  for (at::Tensor& p : parameters())
    p.dim() > 1 ? torch::nn::init::xavier_uniform_(p) : torch::nn::init::zeros_(p);
}

int64_t ConvolutionImpl::left() const {
  return options_.reach == Reach::kCausal ? options_.kernel - 1 : options_.kernel / 2;
}

at::Tensor ConvolutionImpl::gated(const at::Tensor& x, const at::Tensor& lengths) {
  const at::Tensor y = at::glu(projected(x, linear1), -1);
  return lengths.defined() ? y * real_positions(lengths, y) : y;
}

// True where an offset leads out of the sequence: [B or 1, n, 1, kernel]. A row of which all lead out
// (it is padding, which nobody reads) has none.
at::Tensor ConvolutionImpl::outside(const at::Tensor& like, const Place& place) const {
  const auto whole = at::TensorOptions(like.device()).dtype(at::kLong);
  const at::Tensor source =
      at::arange(place.first, place.first + like.size(1), whole).unsqueeze(1) +
      at::arange(options_.kernel, whole) - left();  // [n, kernel]
  const at::Tensor end = place.lengths.defined()
                             ? moved(place.lengths, like).clamp_max(place.end).view({-1, 1, 1})
                             : at::full({1, 1, 1}, place.end, whole);
  const at::Tensor out = source.lt(0).logical_or(source.unsqueeze(0).ge(end));
  return out.logical_and(out.all(-1, true).logical_not()).unsqueeze(2);
}

at::Tensor ConvolutionImpl::kernels_of(const at::Tensor& gated, const Place& place) {
  const int64_t rows = gated.size(0), n = gated.size(1), h = options_.heads, k = options_.kernel;
  const bool light = options_.kernels == Kernels::kLight;
  if (light && options_.edges == Edges::kZeros)
    return at::softmax(weight, -1).expand({rows, n, h, k});
  at::Tensor scores =
      light ? weight.expand({rows, n, h, k}) : weight_linear(gated).unflatten(-1, {h, k});
  if (options_.edges == Edges::kRenormalised)
    scores = scores.masked_fill(outside(gated, place), -std::numeric_limits<double>::infinity());
  return at::softmax(scores, -1);
}

// A learned kernel drops the same weights at every position, as it has one set of them.
at::Tensor ConvolutionImpl::dropped(const at::Tensor& kernels) const {
  if (!is_training() || options_.dropout == 0) return kernels;
  if (options_.kernels == Kernels::kDynamic) return at::dropout(kernels, options_.dropout, true);
  return kernels * at::dropout(at::ones_like(weight), options_.dropout, true);
}

at::Tensor ConvolutionImpl::mixed(const at::Tensor& x, const at::Tensor& lengths) {
  const at::Tensor y = gated(x, lengths);
  return convolve(y, dropped(kernels_of(y, {0, y.size(1), lengths})), left());
}

at::Tensor ConvolutionImpl::forward(const at::Tensor& x, const at::Tensor& lengths) {
  return projected(mixed(x, lengths), linear2);
}

at::Tensor ConvolutionImpl::step_mixed(const at::Tensor& x, StepCache& cache) {
  if (options_.reach != Reach::kCausal)
    throw InvalidArgument(
        "step_mixed: a convolution that reaches both ways, expected a causal one");
  const int64_t before = cache.length(), n = x.size(1);
  const at::Tensor y = gated(x, {});
  cache.append(y);
  const at::Tensor weight = dropped(kernels_of(y, {before, before + n, {}}));
  const int64_t seen = std::min(options_.kernel - 1, before);
  const at::Tensor rows = cache.rows().slice(1, before - seen);
  return weighted_windows(at::constant_pad_nd(rows, {0, 0, options_.kernel - 1 - seen, 0}), weight);
}

at::Tensor ConvolutionImpl::kernels(const at::Tensor& x, const at::Tensor& lengths) {
  const at::Tensor y = gated(x, lengths);
  return kernels_of(y, {0, y.size(1), lengths});
}

// A query is the kernel; a table that is the unit matrix reads it at the offset of a key.
OffsetAttention ConvolutionImpl::as_attention(const at::Tensor& x, const at::Tensor& lengths) {
  const int64_t before = left(), after = options_.kernel - 1 - before,
                clip = std::max(before, after);
  const at::Tensor query =
      at::constant_pad_nd(kernels(x, lengths).transpose(1, 2), {clip - before, clip - after})
          .contiguous();
  return {query,
          at::zeros_like(query),
          {.score = Score(Dot{1.0}).relative(at::eye(2 * clip + 1, query.options()), {}, clip),
           .normaliser = Unnormalised{},
           .structure = Window{before, after}}};
}

at::Tensor ConvolutionImpl::weights(const at::Tensor& x, const at::Tensor& lengths) {
  const at::NoGradGuard no_grad;
  const OffsetAttention call = as_attention(x, lengths);
  return fovea::weights(call.query, call.key, call.choices, {}, {.key_lengths = lengths}).weights;
}

}  // namespace fovea::nn
