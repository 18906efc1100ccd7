// From one dish that is looked at to its recipe as it is shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/vocabulary.h"
#include "data/pictures/image.h"
#include "systems/image_to_set/labels.h"
#include "systems/inverse_cooking/codec.h"
#include "systems/inverse_cooking/network.h"
#include "systems/inverse_cooking/view.h"
#include "train/task.h"

namespace fovea::systems::inverse_cooking {

struct Dish {
  std::string name;
  std::vector<std::string> words = {};  // of the title
  std::vector<uint8_t> pixels = {};     // as the network sees it
  data::Image image = {};               // as it is drawn
  const std::vector<std::string>* expected = nullptr;
};
constexpr int64_t kLongest = 448;  // pixels of a side that is drawn

// Of a picture's file, side x side pixels; of a line of `input`, which is a title or class<TAB>title.
Dish pictured(const std::string& path, int64_t side);
Dish titled(const std::string& input, size_t number, std::string_view line);

struct Cook {
  Network& model;
  const Codec& codec;
  const data::Vocabulary& titles;
  const image_to_set::Labels& labels;
  const RunOptions& run_options;
  int64_t side;  // 0: titles are looked at, not pictures

  // Ingredients, and, where recipes have steps, what is written from them, each with its weights.
  ShownRecipe cooked(const Dish& dish) const;
};

}  // namespace fovea::systems::inverse_cooking
