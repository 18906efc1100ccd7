#include "fovea/nn/quaternion.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>

#include "nn/positive.h"
#include "nn/products/product.h"

namespace fovea::nn {
namespace {

constexpr int64_t kParts = 4;

// Part c of the product a b is sum_p sign[c][p] a_{c xor p} b_p. As a matrix [16, 4]: row 4 c + p
// times the parts of a is what b_p is multiplied by in part c.
at::Tensor make_table() {
  constexpr std::array<std::array<float, kParts>, kParts> kSigns = {
      {{1, -1, -1, -1}, {1, 1, -1, 1}, {1, 1, 1, -1}, {1, -1, 1, 1}}};
  const at::Tensor table = at::zeros({kParts, kParts, kParts});
  for (int64_t c = 0; c < kParts; ++c)
    for (int64_t p = 0; p < kParts; ++p)
      table[c][p][c ^ p] = kSigns[static_cast<size_t>(c)][static_cast<size_t>(p)];
  return table.view({kParts * kParts, kParts});
}

// On the device and in the type of `like`. Kept: a GPU would wait for every copy.
const at::Tensor& table_for(const at::Tensor& like) {
  thread_local at::Tensor kept;
  if (!kept.defined() || kept.device() != like.device() || kept.scalar_type() != like.scalar_type())
    kept = make_table().to(like.options());
  return kept;
}

// The faces of quaternions, given as their parts [4, ...]: [4, 4, ...]. Face c times the parts of b,
// summed over them, is part c of the product with b. One product of matrices.
at::Tensor faces(const at::Tensor& parts) {
  std::vector<int64_t> shape = {kParts};
  shape.insert(shape.end(), parts.sizes().begin(), parts.sizes().end());
  return at::mm(table_for(parts), parts.flatten(1)).view(shape);
}

void check_quaternions(const char* name, int64_t width, int64_t of) {
  check_positive(name, width);
  if (width % of != 0)
    throw InvalidArgument(std::string(name) + ": " + std::to_string(width) +
                          ", expected a multiple of " + std::to_string(of) +
                          (of == kParts ? " (the parts of a quaternion)"
                                        : " (4, the parts of a quaternion, for each head)"));
}

}  // namespace

at::Tensor hamilton_product(const at::Tensor& a, const at::Tensor& b) {
  check_quaternions("a", a.dim() > 0 ? a.size(-1) : 0, kParts);
  check_quaternions("b", b.dim() > 0 ? b.size(-1) : 0, kParts);
  if (a.size(-1) != b.size(-1))
    throw InvalidArgument("b: width " + std::to_string(b.size(-1)) + ", expected " +
                          std::to_string(a.size(-1)) + " (a's)");
  const std::vector<at::Tensor> both = at::broadcast_tensors({a, b});
  const auto parts = [](const at::Tensor& x) {
    return x.unflatten(-1, {kParts, x.size(-1) / kParts}).movedim(-2, 0);
  };
  return (faces(parts(both[0])) * parts(both[1])).sum(1).movedim(0, -2).flatten(-2);
}

QuaternionLinearImpl::QuaternionLinearImpl(int64_t inputs, int64_t outputs)
    : inputs_(inputs), outputs_(outputs) {
  check_quaternions("inputs", inputs, kParts);
  check_quaternions("outputs", outputs, kParts);
  reset();
}

// As large as a linear layer's of the same widths (Glorot & Bengio 2010): a row of the real matrix
// has as many numbers, of the same spread.
void QuaternionLinearImpl::reset() {
  weight = register_parameter("weight", at::empty({kParts, outputs_ / kParts, inputs_ / kParts}));
  bias = register_parameter("bias", at::zeros({outputs_}));
  const at::NoGradGuard no_grad;
  const double bound = std::sqrt(6.0 / static_cast<double>(inputs_ + outputs_));
  weight.uniform_(-bound, bound);
}

at::Tensor QuaternionLinearImpl::real_weight() const {
  return faces(weight).transpose(1, 2).reshape({outputs_, inputs_});
}

at::Tensor QuaternionLinearImpl::forward(const at::Tensor& x) {
  return projected(x, real_weight(), bias);
}

QuaternionMultiHeadImpl::QuaternionMultiHeadImpl(const MultiHeadOptions& options)
    : options_(options) {
  check_positive("heads", options.heads);
  check_quaternions("width", options.width, kParts * options.heads);
  if (!(options.dropout >= 0 && options.dropout < 1))
    throw InvalidArgument("dropout: " + std::to_string(options.dropout) + ", expected 0 <= p < 1");
  reset();
}

void QuaternionMultiHeadImpl::reset() {
  const int64_t d = options_.width;
  query_proj = register_module("query_proj", QuaternionLinear(d, d));
  key_proj = register_module("key_proj", QuaternionLinear(d, d));
  value_proj = register_module("value_proj", QuaternionLinear(d, d));
  out_proj = register_module("out_proj", QuaternionLinear(d, d));
}

at::Tensor QuaternionMultiHeadImpl::split(const at::Tensor& x) const {
  return x.unflatten(-1, {kParts, options_.heads, -1}).permute({0, 3, 1, 2, 4}).flatten(3);
}

// [B, L, width] as [B, 4 heads, L, width / heads]: each head's query faces the key in four ways.
at::Tensor QuaternionMultiHeadImpl::faced(const at::Tensor& x) const {
  const at::Tensor parts = x.unflatten(-1, {kParts, options_.heads, -1}).movedim(2, 0);
  return faces(parts)  // [face, part, B, L, head, quaternion]
      .permute({2, 4, 0, 3, 1, 5})
      .flatten(4)
      .flatten(1, 2);
}

// Of each head: its key once for every face, and the part of its value that belongs to the face.
HeadsCache QuaternionMultiHeadImpl::for_faces(const HeadsCache& heads) const {
  return {heads.key.unsqueeze(2).expand({-1, -1, kParts, -1, -1}).flatten(1, 2),
          heads.value.unflatten(-1, {kParts, -1}).transpose(2, 3).flatten(1, 2)};
}

HeadsCache QuaternionMultiHeadImpl::project(const at::Tensor& memory) {
  return for_faces({split(key_proj(memory)), split(value_proj(memory))});
}

at::Tensor QuaternionMultiHeadImpl::cached_heads(const at::Tensor& query, const HeadsCache& cache,
                                                 const Attention& attention) {
  const at::Tensor out =
      attend(faced(query_proj(query)), cache.key, cache.value, {.structure = attention.structure},
             {.dropout_p = is_training() ? options_.dropout : 0.0,
              .key_lengths = attention.key_lengths,
              .query_offset = attention.query_offset});
  return out.unflatten(1, {options_.heads, kParts})
      .permute({0, 3, 2, 1, 4})
      .flatten(2);  // [B, L, part, head, quaternion]
}

at::Tensor QuaternionMultiHeadImpl::heads(const at::Tensor& query, const at::Tensor& memory,
                                          const Attention& attention) {
  return cached_heads(query, project(memory), attention);
}

at::Tensor QuaternionMultiHeadImpl::forward(const at::Tensor& query, const at::Tensor& memory,
                                            const Attention& attention) {
  return out_proj(heads(query, memory, attention));
}

at::Tensor QuaternionMultiHeadImpl::step_heads(const at::Tensor& x, StepCache& cache) {
  const int64_t before = cache.length();
  const auto rows = [&](const at::Tensor& y) { return split(y).transpose(1, 2).flatten(2); };
  cache.append(at::cat({rows(key_proj(x)), rows(value_proj(x))}, -1));
  return cached_heads(x, for_faces(cache.heads(options_.heads)),
                      {.structure = Causal{}, .query_offset = PerItem(before)});
}

at::Tensor QuaternionMultiHeadImpl::weights(const at::Tensor& query, const HeadsCache& cache,
                                            const Attention& attention) {
  const at::NoGradGuard no_grad;
  return fovea::weights(
             faced(query_proj(query)), cache.key, {.structure = attention.structure}, {},
             {.key_lengths = attention.key_lengths, .query_offset = attention.query_offset})
      .weights;
}

}  // namespace fovea::nn
