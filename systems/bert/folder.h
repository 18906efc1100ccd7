// Encoders as Hugging Face keeps them: a folder of config.json, model.safetensors and vocab.txt or
// tokenizer.json. All of them are treated as hostile; an error names the file and the entry.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>
#include <vector>

#include "systems/bert/model.h"
#include "text/wordpiece/wordpiece.h"
#include "train/types.h"

namespace fovea::systems::bert {

struct Folder {
  nn::BertOptions sizes;
  HeadsWanted heads;                             // those whose weights are there
  std::map<std::string, torch::Tensor> weights;  // by the names of BertModel
  text::WordPiece pieces;
  std::vector<std::string> classes = {};  // names, where it has a classifier
  std::vector<std::string> unused = {};   // tensors that no part of BertModel takes
};
Folder read_folder(const std::string& path);

// Its files, of which `transformers` makes the model again.
Written folder_files(const BertModelImpl& model, const text::WordPiece& pieces,
                     const std::vector<std::string>& classes);

}  // namespace fovea::systems::bert
