// A SentencePiece model looked through before the library sees it. The library walks the compiled
// rules of normalisation (a double-array trie, Aoe 1989) without looking where it steps, so that one
// damaged number sends it outside of the array.
#pragma once

#include <string>
#include <string_view>

namespace fovea::translate {

// InvalidArgument where the model's rules lead outside of themselves; `name` is the file's. What the
// library checks itself is left to it.
void check_piece_model(std::string_view model, const std::string& name);

}  // namespace fovea::translate
