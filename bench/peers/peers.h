// What people run today, on libtorch, each written as its documentation recommends: the fused
// operator where there is one, otherwise the shortest composition of fast operators, in chunks
// where the whole would not fit memory.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace fovea::bench::peers {

// at::scaled_dot_product_attention; mask: bool (True sees) or float (added), any broadcast of [B,
// H, L, S], or undefined.
at::Tensor sdpa(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                const at::Tensor& mask = {});
at::Tensor sdpa_causal(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);
at::Tensor sdpa_grouped(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

// softmax(cap tanh(q.k scale / cap)) v
at::Tensor soft_cap(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    double cap);

// softmax(w' tanh(q + k)) v; weight [H, E]. The [L, S, E] sums of one (batch, head) chunk at a time
// where `chunked`.
at::Tensor additive(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& weight);
at::Tensor additive_by_head(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& weight);

// sum_j K_h(q - k_j) v_j / sum_j K_h(q - k_j), with u = |q - k| / h from at::cdist; profile(u)
// gives K. Holds queries x keys: for a chunk of queries.
using Profile = at::Tensor (*)(const at::Tensor& u);
at::Tensor kernel_ratio(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        double bandwidth, Profile profile);
// The Gaussian as softmax(-|q - k|^2 / 2 h^2), the distance from differences, which a chunk holds
// for every pair.
at::Tensor gaussian_differences(const at::Tensor& query, const at::Tensor& key,
                                const at::Tensor& value, double bandwidth);
// The same, the square expanded: |q|^2 + |k|^2 - 2 q.k, one
// matrix product.
at::Tensor gaussian_expanded(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, double bandwidth);

// Graph attention on edges (row i sees column j), packed (nodes, H, ...): gather the two halves,
// softmax over each row by scatter_reduce and index_add, gather, weigh and index_add the values.
at::Tensor graph_scatter(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const at::Tensor& rows, const at::Tensor& columns, double negative_slope);

// Threshold normalisers over the last dimension, by a sort as their papers give them; backward in
// closed form. Top-k also by libtorch's own selection.
at::Tensor sparsemax(const at::Tensor& scores);
at::Tensor entmax15(const at::Tensor& scores);
at::Tensor top_k_sorted(const at::Tensor& scores, int64_t k);
at::Tensor top_k_selected(const at::Tensor& scores, int64_t k);
// normalise(q.k scale) v
at::Tensor with_normaliser(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const std::function<at::Tensor(const at::Tensor&)>& normalise);

}  // namespace fovea::bench::peers
