#include "systems/gat/looks.h"

#include <torch/torch.h>

#include <algorithm>
#include <map>

namespace fovea::systems::gat {
namespace {

// The kHit of a node; weight and index [heads, neighbours].
int hit_of(int64_t node, const torch::Tensor& weight, const torch::Tensor& index,
           const std::vector<uint8_t>& survey) {
  std::map<int64_t, double> sums;  // by neighbour, ascending: ties go to the lower index
  for (int64_t i = 0; i < index.numel(); ++i)
    if (const int64_t key = index.data_ptr<int64_t>()[i]; key >= 0 && key != node)
      sums[key] += weight.data_ptr<float>()[i];
  int64_t best = -1, papers = 0;
  for (const auto& [key, sum] : sums) {
    papers += !survey[static_cast<size_t>(key)];
    if (best < 0 || sum > sums.at(best)) best = key;
  }
  const bool open_question = papers > 0 && papers < static_cast<int64_t>(sums.size());
  return open_question ? !survey[static_cast<size_t>(best)] : -1;
}

}  // namespace

torch::Tensor looks_of(const Layer::Parts& layer, const Surveyed& graph,
                       std::span<const int64_t> nodes) {
  const auto count = static_cast<int64_t>(nodes.size());
  torch::Tensor out = torch::zeros({count, kLooks}, torch::kFloat64);
  if (nodes.empty()) return out;
  std::vector<int64_t> places;
  int64_t widest = 1;
  for (const int64_t node : nodes) {
    places.push_back(graph.part ? graph.part->place_of(node) : node);
    widest = std::max(widest, data::degree(graph.sees, places.back()));
  }
  const torch::Tensor rows = torch::tensor(at::ArrayRef<int64_t>(places), torch::kInt64);
  const SelectedWeights found = weights(layer.query, layer.key, layer.choices,
                                        {.rows = rows.to(layer.query.device()), .top_k = widest});
  const torch::Tensor weight = found.weights.reshape({-1, count, widest}).cpu(),
                      index = found.indices.reshape({-1, count, widest})
                                  .to(torch::kCPU, torch::kInt64, false, /*copy=*/true);
  const torch::Tensor looked_at = index.ge(0);
  out.select(1, kWeights).copy_(looked_at.sum(at::IntArrayRef{0, 2}));
  out.select(1, kZeros).copy_(looked_at.logical_and(weight.eq(0)).sum(at::IntArrayRef{0, 2}));
  if (graph.part)
    for (int64_t i = 0; i < index.numel(); ++i)
      if (int64_t& key = index.data_ptr<int64_t>()[i]; key >= 0) key = graph.part->number_of(key);
  for (int64_t i = 0; i < count; ++i)
    out[i][kHit] = hit_of(nodes[static_cast<size_t>(i)], weight.select(1, i).contiguous(),
                          index.select(1, i).contiguous(), graph.survey);
  return out;
}

}  // namespace fovea::systems::gat
