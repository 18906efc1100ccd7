// Luong, Pham & Manning 2015: attention from the decoder's new state, with four scores, local
// windows and input feeding.
//
//   e_tj = s' h | s' W h | v' tanh(W [s; h]) | (W s)_j
//   c_t = sum_j a_tj h_j,   s~_t = tanh(W_c [c_t; s_t]), or [c_t; s_t] itself
//
// The encoder's states may be wider or narrower than the decoder's: W is then rectangular.
#pragma once

#include "fovea/attend.h"
#include "fovea/nn/recurrent.h"
#include "translate/model.h"

namespace fovea::systems {

enum class LuongScore { kDot, kGeneral, kConcat, kLocation };
enum class LuongWindow { kGlobal, kMonotonic, kPredictive };
enum class LuongJoin { kTanh, kConcatenation };  // what goes on: s~, or [c; s] as it is

struct LuongConfig {
  int64_t embedding = 128, width = 128;  // width of the decoder
  int64_t source_width = 128;            // of the encoder's states, both directions together
  int64_t attention = 128;               // of the additive score: the length of v
  int64_t layers = 1;
  double dropout = 0.1;
  LuongScore score = LuongScore::kGeneral;
  LuongWindow window = LuongWindow::kGlobal;
  LuongJoin join = LuongJoin::kTanh;
  int64_t half_window = 10;      // D
  int64_t longest_source = 100;  // of a location score
  bool input_feeding = true;
  bool reverse = false;  // read the source backwards
  bool bidirectional = true;
};

class LuongModel : public translate::Model {
 public:
  LuongModel(const LuongConfig& config, const translate::Vocabularies& vocabularies);

  at::Tensor logits(const translate::Batch& batch) override;
  std::unique_ptr<nn::StepModel> start(const translate::Batch& sources,
                                       translate::Want want) override;
  at::Tensor alignment(const translate::Batch& batch) override;
  std::vector<translate::AttentionMaps> maps(const translate::Batch& batch) override;
  std::optional<translate::DecodingSteps> steps(const translate::Batch& batch) override;

 private:
  class Steps;
  struct Memory {
    at::Tensor states, keys, lengths;  // [B, S, source width], [B, S, E], [B]
    at::Tensor shown_at;  // position of each column in the source as written; undefined: the same
  };
  struct Decoder {
    std::vector<at::Tensor> hidden, cells;  // one per layer, [B, width]
    at::Tensor fed;                         // what the step before gave, [B, joined width]
    int64_t t = 0;
  };
  // The query and choices of one step, and for local-p the factor on each key's value.
  struct Look {
    at::Tensor query;  // [B, 1, T, E]
    at::Tensor keys;   // [B, 1, S, E]
    Choices choices;
    at::Tensor factor;  // [B, S] or undefined
  };

  Memory encode(const translate::Batch& batch, Decoder* decoder);
  at::Tensor advance(const at::Tensor& word, Decoder& decoder);  // the new top state
  // Without input feeding and windows no step depends on another: all top states [B, T, width] at
  // once.
  bool at_once() const { return !config_.input_feeding && config_.window == LuongWindow::kGlobal; }
  at::Tensor all_states(at::Tensor words, const Decoder& decoder);
  // states [B, T, width]; a window's t is that of the first.
  Look look(const Memory& memory, const at::Tensor& states, int64_t t);
  at::Tensor mix(const Memory& memory, const at::Tensor& state,
                 Decoder& decoder);  // s~, which is also the next input
  at::Tensor weights(const Memory& memory, const at::Tensor& state,
                     int64_t t);  // [B, S] in the source's own order
  at::Tensor embed_target(const at::Tensor& tokens);
  // c and s, [B, …, source width] and [B, …, width], as they go on to the output.
  at::Tensor joined(const at::Tensor& context, const at::Tensor& state);
  int64_t joined_width() const;

  LuongConfig config_;
  torch::nn::Embedding source_{nullptr}, target_{nullptr};
  nn::Recurrent encoder_{nullptr};
  torch::nn::ModuleList cells_{nullptr};
  at::Tensor general_, concat_;  // W and v
  torch::nn::Linear concat_query_{nullptr}, concat_key_{nullptr}, location_{nullptr};
  torch::nn::Linear position_{nullptr}, position_score_{nullptr};  // local-p
  torch::nn::Linear first_hidden_{nullptr}, first_cell_{nullptr};  // where the widths differ
  torch::nn::Linear combine_{nullptr}, output_{nullptr};
};

}  // namespace fovea::systems
