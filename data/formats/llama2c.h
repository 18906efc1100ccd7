// Checkpoints and tokenizers of llama2.c (Karpathy 2023), version 0: a header of seven numbers, then
// float32 weights, stacked over the layers. Both files are treated as hostile.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/array.h"

namespace fovea::data {

struct Llama2c {
  int64_t width = 0, hidden = 0, layers = 0, heads = 0, key_heads = 0, vocabulary = 0, context = 0;
  bool own_output = false;  // a negative vocabulary in the header: the output layer is not the
                            // embedding
  // tok_embeddings, attention_norm [layers, width], wq, wk, wv, wo, ffn_norm, w1, w2, w3, norm, and
  // output where it is the model's own. The tables of rotations are left out.
  std::map<std::string, Array> arrays = {};
};

// FileError, which names `path`: a number in the header that no model can have, a width that the heads
// do not divide, a file that is shorter or longer than the header says, weights that are not
// finite.
Llama2c parse_llama2c(std::string_view bytes, const std::string& path);
std::string llama2c_bytes(const Llama2c& checkpoint);

// Pieces with their scores, in the order of their numbers: 0 unknown, 1 begin, 2 end, 3 to 258 the
// bytes.
struct Llama2cTokens {
  std::vector<std::string> pieces = {};
  std::vector<float> scores = {};
};
Llama2cTokens parse_llama2c_tokens(std::string_view bytes, const std::string& path);
std::string llama2c_token_bytes(const Llama2cTokens& tokens);

}  // namespace fovea::data
