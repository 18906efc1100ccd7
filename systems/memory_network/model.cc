#include "systems/memory_network/model.h"

#include <torch/torch.h>

#include <algorithm>

#include "data/story_codec.h"

namespace fovea::systems::memory_network {

Model::Model(const nn::MemoryOptions& options, Training training) : training_(training) {
  memory_ = register_module("memory", nn::Memory(options));
  linear_ = register_buffer("linear", torch::zeros({1}));
}

void Model::set_reading(Reading reading) { linear_.fill_(reading == Reading::kLinear ? 1 : 0); }
bool Model::reads_linearly() const { return linear_.item<float>() != 0; }

nn::Recall Model::recall(const nn::Stories& stories) {
  if (reads_linearly()) return memory_->recall(stories, Unnormalised{});
  if (supervised() && !is_training()) return memory_->recall(stories, Hard{});
  return memory_->recall(stories);
}

torch::Tensor Model::logits(const nn::Recall& recall) {
  return memory_->answer(recall.state).slice(1, data::StoryCodec::kFirstAnswer);
}

torch::Tensor Model::support_loss(const nn::Recall& recall, const nn::Remembered& batch) const {
  const torch::Tensor begins = batch.stories.stories.cpu();
  torch::Tensor sum = torch::zeros({}, recall.state.options());
  for (size_t hop = 0; hop < recall.hops.size(); ++hop) {
    std::vector<int64_t> rows, lines;
    for (size_t i = 0; i < batch.support.size(); ++i) {
      const std::vector<int64_t>& support = batch.support[i];
      if (support.empty()) continue;
      rows.push_back(static_cast<int64_t>(i));
      lines.push_back(begins[rows.back()].item<int64_t>() +
                      support[std::min(hop, support.size() - 1)]);
    }
    if (rows.empty()) break;
    const nn::Hop& read = recall.hops[hop];
    const auto chosen = [&](const torch::Tensor& from, const std::vector<int64_t>& items) {
      return from.index_select(0, torch::tensor(items, torch::kInt64).to(from.device()));
    };
    const torch::Tensor score =
        (chosen(read.query, rows) * chosen(read.key, lines)).sum(at::IntArrayRef{1, 2});
    const torch::Tensor all = attend_full(read.query, read.key, read.value, read.choices).lse;
    sum = sum + (chosen(all, rows).flatten() - score).mean();
  }
  return sum / static_cast<double>(recall.hops.size());
}

torch::Tensor Model::heaviest(const nn::Recall& recall) const {
  std::vector<torch::Tensor> out;
  for (const nn::Hop& hop : recall.hops)
    out.push_back(weights(hop.query, hop.key, hop.choices, {.top_k = 1}).indices.flatten());
  return torch::stack(out).to(torch::kCPU, torch::kInt64);
}

}  // namespace fovea::systems::memory_network
