// Continues a text, token by token.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "fovea/nn/language_model.h"
#include "systems/next_word/sampling.h"
#include "systems/next_word/tokens.h"

namespace fovea::systems::next_word {

struct WriteRequest {
  int64_t length = 64;  // the most tokens
  Sampling sampling = {};
  uint64_t seed = 1;
};

struct WrittenText {
  std::string text;  // the prompt and what follows it
  int64_t tokens = 0;
  int64_t forgotten = 0;  // tokens of the prompt that did not fit into the context
  int64_t slid = 0;       // how often the context was full while writing
  double seconds = 0;     // of all tokens but the first
};

// On the CPU with nn::LanguageSteps, elsewhere with the model's own cache. If the context is full,
// its later half is read again and kept; the text before it is forgotten.
class Writer {
 public:
  Writer(nn::LanguageModel model, const Tokens& tokens);
  ~Writer();
  WrittenText write(std::string_view prompt, const WriteRequest& request);

 private:
  class Steps;
  nn::LanguageModel model_;
  const Tokens& tokens_;
  std::unique_ptr<Steps> steps_;
};

}  // namespace fovea::systems::next_word
