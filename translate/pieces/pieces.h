// SentencePiece models as codecs.
#pragma once

#include "translate/codec.h"

namespace fovea::translate {

// As pictures write tokens: a space, and what stands before a piece that goes on with the word before it.
inline constexpr const char* kBlank = "␣";
inline constexpr const char* kGoesOn = "·";

std::unique_ptr<Codec> learn_pieces(const std::vector<std::string>& lines, int64_t size);
std::unique_ptr<Codec> pieces_from_bytes(std::string_view bytes, const std::string& name);

}  // namespace fovea::translate
