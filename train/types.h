// Types that the verbs and the tasks share: where items come from, evaluations, files of a run. Does
// not include libtorch.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

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

// How the items of a source are split; the shares and the kind of items are not part of it.
inline data::SplitRequest split_request(const Source& source) {
  return {.fold = source.fold,
          .folds = source.folds,
          .seed = source.seed,
          .all_test = source.all_test,
          .keys = {},
          .classes = {}};
}

struct Evaluation {
  int64_t items = 0;
  Metrics metrics = {};
  Metrics attention = {};               // "hit_rate", … where the truth is known
  std::vector<std::string> notes = {};  // what a reader of the figures must know: one is undefined
  std::optional<Split> of = {};         // the split that was evaluated, if not the requested one

  // A figure that may have no value by its definition (NaN): then a note says so. Every other
  // figure must be finite; evaluation refuses one that is not.
  void put(const std::string& name, double value) {
    if (std::isnan(value))
      notes.push_back(name + ": undefined, nothing to divide by");
    else
      metrics[name] = value;
  }
};

// What a run keeps beside the weights: facts in config.json, files in the RUN folder (a vocabulary,
// a SentencePiece model).
struct Assets {
  Json facts = Json::object();
  std::map<std::string, std::string> files = {};  // name -> bytes
};

// Items written as files that `--data` accepts.
struct Written {
  std::map<std::string, std::string> files = {};  // name within the folder -> bytes
  std::string data = {};                          // which of them --data takes; empty: the folder
  std::string truth = {};  // where the true attention stands; empty: it has none
};

// What predict and explain are given; `name` is for messages.
struct Input {
  std::istream& stream;
  std::string name;
  // predict: called for each line that has no answer; the next line is then read. If empty, the
  // first such line is an exception.
  std::function<void(const std::string& error)> refused = {};
  // Called with a remark on an answer, for example a word that was not in the training.
  std::function<void(const std::string& note)> noted = {};
  // predict: lines of the same input before the stream, which another rank answers. Their count is
  // added to the number of a line.
  size_t before = 0;
};

}  // namespace fovea
