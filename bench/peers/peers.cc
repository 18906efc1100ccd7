#include "bench/peers/peers.h"

#include <cmath>
#include <vector>

namespace fovea::bench::peers {
namespace {

double default_scale(const at::Tensor& query) {
  return 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
}

}  // namespace

at::Tensor sdpa(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                const at::Tensor& mask) {
  const std::optional<at::Tensor> given = mask.defined() ? std::optional(mask) : std::nullopt;
  return at::scaled_dot_product_attention(query, key, value, given);
}

at::Tensor sdpa_causal(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  return at::scaled_dot_product_attention(query, key, value, {}, 0.0, true);
}

at::Tensor sdpa_grouped(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  return at::scaled_dot_product_attention(query, key, value, {}, 0.0, false, std::nullopt, true);
}

at::Tensor soft_cap(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    double cap) {
  const at::Tensor scores = at::matmul(query * (default_scale(query) / cap), key.transpose(-2, -1));
  return at::matmul(at::softmax(scores.tanh() * cap, -1), value);
}

at::Tensor additive(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& weight) {
  const at::Tensor hidden = at::tanh(query.unsqueeze(-2) + key.unsqueeze(-3));  // [B, H, L, S, E]
  const at::Tensor scores =
      at::matmul(hidden, weight.view({1, weight.size(0), 1, -1, 1})).squeeze(-1);
  return at::matmul(at::softmax(scores, -1), value);
}

at::Tensor additive_by_head(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& weight) {
  std::vector<at::Tensor> heads;
  for (int64_t h = 0; h < query.size(1); ++h) {
    heads.push_back(additive(query.narrow(1, h, 1), key.narrow(1, h, 1), value.narrow(1, h, 1),
                             weight.narrow(0, h, 1)));
  }
  return at::cat(heads, 1);
}

at::Tensor kernel_ratio(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        double bandwidth, Profile profile) {
  const at::Tensor weights = profile(at::cdist(query, key) / bandwidth);
  return at::matmul(weights, value) / weights.sum(-1, true);
}

at::Tensor gaussian_differences(const at::Tensor& query, const at::Tensor& key,
                                const at::Tensor& value, double bandwidth) {
  const at::Tensor squares = (query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1);
  return at::matmul(at::softmax(squares * (-0.5 / (bandwidth * bandwidth)), -1), value);
}

at::Tensor gaussian_expanded(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, double bandwidth) {
  const double factor = 1.0 / (bandwidth * bandwidth);
  // |q|^2 is the same for a whole row, and softmax ignores it.
  const at::Tensor norms = (key * key).sum(-1).unsqueeze(-2) * (-factor / 2);
  const at::Tensor scores = at::matmul(query * factor, key.transpose(-2, -1)) + norms;
  return at::matmul(at::softmax(scores, -1), value);
}

at::Tensor graph_scatter(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const at::Tensor& rows, const at::Tensor& columns, double negative_slope) {
  const int64_t nodes = query.size(0), heads = query.size(1);
  const at::Tensor scores = at::leaky_relu(
      query.squeeze(-1).index_select(0, rows) + key.squeeze(-1).index_select(0, columns),
      negative_slope);  // [edges, H]
  const at::Tensor index = rows.unsqueeze(-1).expand_as(scores);
  const at::Tensor maximum = at::full({nodes, heads}, -INFINITY, scores.options())
                                 .scatter_reduce(0, index, scores.detach(), "amax")
                                 .index_select(0, rows);
  const at::Tensor powers = (scores - maximum).exp();
  const at::Tensor sums = at::zeros({nodes, heads}, scores.options()).index_add(0, rows, powers);
  const at::Tensor weights = powers / sums.index_select(0, rows);
  const at::Tensor messages = value.index_select(0, columns) * weights.unsqueeze(-1);
  return at::zeros_like(value).index_add(0, rows, messages);
}

at::Tensor with_normaliser(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const std::function<at::Tensor(const at::Tensor&)>& normalise) {
  const at::Tensor scores = at::matmul(query * default_scale(query), key.transpose(-2, -1));
  return at::matmul(normalise(scores), value);
}

}  // namespace fovea::bench::peers
