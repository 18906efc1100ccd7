// The next token's scores, one token at a time, on the CPU in float32: the fast way to write text
// with a LanguageModel. The weights are packed once; a step makes no tensors.
#pragma once

#include <memory>
#include <span>

#include "fovea/nn/language_model.h"

namespace fovea::nn {

class LanguageSteps {
 public:
  // The weights are copied, so a later change of the model has no effect. InvalidArgument if the
  // model is not in float32 on the CPU.
  explicit LanguageSteps(LanguageModelImpl& model);
  ~LanguageSteps();
  LanguageSteps(LanguageSteps&&) noexcept;
  LanguageSteps& operator=(LanguageSteps&&) noexcept;

  // Scores [vocabulary] of what follows the token; valid until the next step. InvalidArgument for a
  // token outside of the vocabulary, and where the context is full.
  std::span<const float> step(int64_t token);
  // Forgets all tokens.
  void clear();
  int64_t length() const;  // tokens so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fovea::nn
