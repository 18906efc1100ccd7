// The training texts of a language model, and how they are cut into contexts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/split.h"
#include "train/types.h"

namespace fovea::systems::next_word {

struct Documents {
  std::vector<std::string> texts;
  data::Splits splits;
  bool own_parts = false;  // a folder says which are for training
};

// A document for each of so many generated sentences (sentences.h).
Documents draw_documents(const Source& source, int64_t sentences);
// Generated sentences as files, with the place of the word that decides.
Written written(const Documents& documents);

enum class Unit { kLine, kFile };

// A file of text, or a folder of train.txt, val.txt, test.txt. kLine: each line that is not empty
// is a document, and equal lines go to the same split. kFile: the lines are one text; its first
// eight tenths are for training, then one for validation and one for test. InvalidArgument if there
// are too few for three splits.
Documents read_documents(const Source& source, Unit unit, std::string_view line_end);

// What the model reads and what it should say, of equal length, at most `context` each.
struct Window {
  std::vector<int64_t> inputs, targets;
};
// `ids` with begin and end around them.
std::vector<Window> windows_of(const std::vector<int64_t>& ids, int64_t context);

}  // namespace fovea::systems::next_word
