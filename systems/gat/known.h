// What a model knows of the graph that it was trained on, and whether another graph fits it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/graph.h"

namespace fovea::systems::gat {

struct Known {
  int64_t features = 0, classes = 0;
  bool words = false;
  std::vector<std::string> class_names = {}, feature_names = {};  // of features: empty if unknown

  // Brings a graph's classes and its named features into the order of the training; some of the
  // classes may be missing. Throws if the graph does not fit; `path` is where it was read.
  void check_fits(data::CitationGraph& graph, const std::string& path) const;
};

Known known_of(const data::CitationGraph& graph);

}  // namespace fovea::systems::gat
