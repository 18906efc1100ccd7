// The words the verbs and the tasks share: where items come from, what was found out, what is kept;
// no libtorch here.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "data/split.h"

namespace fovea {

using data::Split;
using Json = nlohmann::ordered_json;
using Metrics = std::map<std::string, double>;

// Where items come from. No path: the system's generator.
struct Source {
  std::string path = {};
  uint64_t seed = 1;  // of generated data and of splits: the same for all repeats of a run
  int64_t fold = 0,
          folds = 0;      // cross-validation: `fold` of `folds` is the test split; 0 folds: none
  bool all_test = false;  // evaluate --data: the whole file is the test split
};

struct Evaluation {
  int64_t items = 0;
  Metrics metrics = {};
  Metrics attention = {};  // "hit_rate", … where the truth is known
};

// What a run keeps beside the weights: facts in config.json, files in the RUN folder (a vocabulary,
// a SentencePiece model).
struct Assets {
  Json facts = Json::object();
  std::map<std::string, std::string> files = {};  // name -> bytes
};

// What predict and explain are given; `name` is for messages.
struct Input {
  std::istream& stream;
  std::string name;
};

}  // namespace fovea
