// The model of next-word, from options or from a llama2.c checkpoint.
#pragma once

#include "data/formats/llama2c.h"
#include "fovea/nn/language_model.h"
#include "train/option_values.h"
#include "train/run/tensor_file.h"
#include "train/types.h"

namespace fovea::systems::next_word {

nn::LanguageModelOptions sizes_of(const OptionValues& options, int64_t vocabulary);
nn::LanguageModelOptions sizes_of(const data::Llama2c& checkpoint);

// What a run's configuration keeps of them, and back.
Json facts_of(const nn::LanguageModelOptions& sizes);
nn::LanguageModelOptions sizes_from(const Json& facts);

// The checkpoint's weights by the names of nn::LanguageModel, and back. A checkpoint has RMS norms and
// rotary positions.
std::map<std::string, torch::Tensor> weights_of(const data::Llama2c& checkpoint);
data::Llama2c checkpoint_of(const nn::LanguageModelImpl& model);

}  // namespace fovea::systems::next_word
