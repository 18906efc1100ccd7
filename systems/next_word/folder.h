// The model of next-word as other programs read it.
#pragma once

#include "fovea/nn/language_model.h"
#include "systems/next_word/tokens.h"
#include "train/types.h"

namespace fovea::systems::next_word {

// config.json and model.safetensors, which Hugging Face's transformers reads as a Llama, and
// tokens.json, the piece of each number. With the pieces of a llama2.c tokenizer also model.bin and
// tokenizer.bin, which llama2.c reads. UsageError: a Llama has no such norms or positions.
Written folder_files(const nn::LanguageModelImpl& model, const Tokens& tokens);

}  // namespace fovea::systems::next_word
