// A translation model whose decoder goes from word to word: it reads a memory and keeps states. A
// system writes how a sentence becomes a memory, and how words go through the decoder; training,
// decoding and alignment follow.
#pragma once

#include <vector>

#include "translate/memory.h"
#include "translate/model.h"

namespace fovea::translate {

class RecurrentModel : public Model {
 public:
  at::Tensor logits(const Batch& batch) final;
  std::unique_ptr<nn::StepModel> start(const Batch& sources, Want want) final;
  at::Tensor alignment(const Batch& batch) final;

 protected:
  struct Decoder {
    Memory memory;
    std::vector<at::Tensor> states;  // [B, …] each
  };
  virtual Decoder encode(const Batch& batch) = 0;
  // Words [B, T], one or a whole sentence, to logits [B, T, vocabulary]. The states move on. The
  // weights of each step [B, S] go to `rows` where it is given: row t belongs to the word that it
  // helps to choose.
  virtual at::Tensor decode(Decoder& decoder, const at::Tensor& words,
                            std::vector<at::Tensor>* rows) = 0;

 private:
  class Steps;
};

}  // namespace fovea::translate
