// What the model says: along given captions, and in captions that it searches.
#pragma once

#include <torch/types.h>

#include <vector>

#include "data/formats/vocabulary.h"
#include "fovea/nn/beam_search.h"
#include "systems/show_attend_tell/gallery.h"
#include "systems/show_attend_tell/lines.h"
#include "systems/show_attend_tell/model.h"
#include "systems/show_attend_tell/view.h"
#include "train/task.h"

namespace fovea::systems::show_attend_tell {

struct Teller {
  Model& model;
  const Gallery& gallery;
  const data::Vocabulary& vocabulary;
  const RunOptions& run_options;

  // Along these captions, word by word.
  Told follow(const Lines& lines) const;
  // The best caption of each picture.
  std::vector<nn::Hypothesis> search(const torch::Tensor& pictures, int64_t beam) const;
  // Searches the caption of one picture, then goes through it again for the weights.
  void look(const torch::Tensor& picture, Shown& shown) const;
};

}  // namespace fovea::systems::show_attend_tell
