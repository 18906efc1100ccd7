// Show, Attend and Tell: Xu, Ba, Kiros, Cho, Courville, Salakhutdinov, Zemel & Bengio 2015.
//
//   a_i: regions of the picture;  h_0, c_0 from mean_i a_i
//   e_ti = w·tanh(W_a a_i + W_h h_{t-1}),  α_t = softmax(e_t)
//   soft: z_t = β_t Σ_i α_ti a_i;  hard: z_t = β_t a_s, s drawn from α_t;  β_t = σ(w_β·h_{t-1})
//   h_t, c_t = LSTM([E y_{t-1}; z_t], h_{t-1}, c_{t-1})
//   p(y_t) = softmax(L_o(E y_{t-1} + L_h h_t + L_z z_t))
#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <vector>

#include "fovea/attend.h"
#include "fovea/nn/beam_search.h"
#include "systems/show_attend_tell/encoder.h"

namespace fovea::systems::show_attend_tell {

enum class Looks {
  kSoft,
  kHard,
  kNone,   // every word reads the mean of all regions
  kStart,  // z = 0: the first state alone knows the picture, as in Vinyals et al. 2015
};
constexpr bool attends(Looks looks) { return looks == Looks::kSoft || looks == Looks::kHard; }

struct Shape {
  int64_t words = 0;
  RegionShape regions = {};
  int64_t embedding = 128;  // E, and of the deep output
  int64_t width = 256;      // h
  int64_t attention = 128;  // w
  double dropout = 0;       // of E y, h_0 and the deep output
  Looks looks = Looks::kSoft;
};

// What the decoder knows before and after a word.
struct State {
  torch::Tensor hidden, cell;  // [items, width]
};
// A picture, ready to be looked at.
struct Seen {
  torch::Tensor regions;  // a, [items, regions, region width]
  torch::Tensor keys;     // W_a a
  // a beside the identity: what attend returns then has α too. Without attention: z of every word.
  torch::Tensor values;
};

// A batch of captions, word by word.
struct Told {
  torch::Tensor logits;   // [real words, vocabulary], item by item, word by word
  torch::Tensor weights;  // α, [items, longest, regions]; zero where a caption has ended
  torch::Tensor chosen;   // hard: the log-probability of each region drawn, [items, longest]
  torch::Tensor drawn;    // hard: whether the item's regions were drawn, [items]
};

class Model : public torch::nn::Module {
 public:
  explicit Model(const Shape& shape);

  // Pictures [items, 3, side, side], or arrays of regions [items, regions, width].
  Seen see(const torch::Tensor& pictures);
  // Words [items, longest] that the decoder reads, and which of them are real.
  Told tell(const Seen& seen, const torch::Tensor& words, const torch::Tensor& real);

  struct Step {
    torch::Tensor logits;   // [items, vocabulary]
    torch::Tensor weights;  // [items, regions]
    torch::Tensor gate;     // β, [items]
  };
  State start(const Seen& seen);
  // One word further; hard attention takes its likeliest region.
  Step step(const Seen& seen, State& state, const torch::Tensor& words);

  void standardise(const torch::Tensor& mean, double deviation) {  // arrays of regions
    encoder_->standardise(mean, deviation);
  }

  const Shape& shape() const { return shape_; }
  // b: a moving mean of log p(y), which a reward is compared with. A buffer, so that a resumed run has
  // it too.
  torch::Tensor baseline;

 private:
  struct Look {
    torch::Tensor context, weights, gate, gates_of_state;
  };
  Look look(const Seen& seen, const torch::Tensor& hidden, const torch::Tensor& of_hidden);
  State advance(const torch::Tensor& of_word, const Look& look, const torch::Tensor& context,
                const torch::Tensor& cell);
  torch::Tensor from_hidden() const;
  torch::Tensor dropped(const torch::Tensor& x) const;
  torch::Tensor out(const torch::Tensor& embedded, const torch::Tensor& hidden,
                    const torch::Tensor& context);

  const Shape shape_;
  Encoder encoder_{nullptr};
  torch::nn::Embedding words_{nullptr};
  torch::nn::Linear start_hidden_{nullptr}, start_cell_{nullptr};
  torch::nn::Linear key_{nullptr}, query_{nullptr}, gate_{nullptr};
  torch::Tensor score_;  // w
  torch::nn::Linear of_word_{nullptr}, of_context_{nullptr},
      of_hidden_{nullptr};  // LSTM: i, f, g, o
  torch::nn::Linear out_hidden_{nullptr}, out_context_{nullptr}, out_{nullptr};
};

// Captions word by word for a beam search.
std::unique_ptr<nn::StepModel> speak(Model& model, const torch::Tensor& pictures);

}  // namespace fovea::systems::show_attend_tell
