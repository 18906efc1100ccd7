#include "systems/next_word/writer.h"

#include <torch/torch.h>

#include <chrono>
#include <optional>
#include <vector>

#include "fovea/nn/language_steps.h"
#include "train/interrupt.h"

namespace fovea::systems::next_word {

class Writer::Steps {
 public:
  explicit Steps(nn::LanguageModel model) : model_(std::move(model)) {
    const torch::Tensor weight = model_->tok_embeddings->weight;
    if (weight.is_cpu() && weight.scalar_type() == torch::kFloat) fast_.emplace(*model_);
  }
  std::span<const float> step(int64_t token) {
    if (fast_) return fast_->step(token);
    const torch::Tensor tokens =
        torch::tensor({{token}}, torch::kLong).to(model_->tok_embeddings->weight.device());
    scores_ = model_->step(tokens, cache_).flatten().to(torch::kCPU, torch::kFloat).contiguous();
    return {scores_.const_data_ptr<float>(), static_cast<size_t>(scores_.numel())};
  }
  void clear() {
    if (fast_) fast_->clear();
    cache_ = {};
  }

 private:
  nn::LanguageModel model_;
  std::optional<nn::LanguageSteps> fast_;
  nn::LanguageCache cache_;
  torch::Tensor scores_;
};

Writer::Writer(nn::LanguageModel model, const Tokens& tokens)
    : model_(model), tokens_(tokens), steps_(std::make_unique<Steps>(std::move(model))) {}
Writer::~Writer() = default;

WrittenText Writer::write(std::string_view prompt, const WriteRequest& request) {
  using Clock = std::chrono::steady_clock;
  std::vector<int64_t> ids = ids_of(tokens_, prompt);
  const size_t prompt_length = ids.size();
  const auto context = static_cast<size_t>(model_->options().context);
  WrittenText out;
  data::Random random(request.seed);
  steps_->clear();
  std::span<const float> scores;
  size_t held = 0;
  const auto read_last = [&](size_t count) {
    steps_->clear();
    for (size_t i = ids.size() - count; i < ids.size(); ++i) scores = steps_->step(ids[i]);
    held = count;
  };
  if (ids.size() > context) out.forgotten = static_cast<int64_t>(ids.size() - context);
  read_last(std::min(ids.size(), context));
  Clock::time_point start;
  for (; out.tokens < request.length; ++out.tokens) {
    train::stop_if_interrupted("while writing");
    const int64_t next = chosen(scores, request.sampling, random);
    if (tokens_.ends(next)) break;
    ids.push_back(next);
    if (out.tokens + 1 == request.length) {
      ++out.tokens;
      break;
    }
    if (held < context) {
      scores = steps_->step(next);
      ++held;
    } else {
      read_last(std::max<size_t>(context / 2, 1));
      ++out.slid;
    }
    if (out.tokens == 0) start = Clock::now();
  }
  if (out.tokens > 1) out.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  // The text that was typed is not changed, even if one of its words has no token.
  const std::span<const int64_t> all(ids);
  const std::string head = tokens_.decode(all.subspan(0, prompt_length)),
                    whole = tokens_.decode(all);
  out.text = whole.starts_with(head) ? std::string(prompt) + whole.substr(head.size()) : whole;
  return out;
}

}  // namespace fovea::systems::next_word
