#include "systems/gat/known.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "data/count_of.h"
#include "data/files/file.h"
#include "data/formats/bags.h"

namespace fovea::systems::gat {

Known known_of(const data::CitationGraph& graph) {
  return {.features = graph.features,
          .classes = graph.classes,
          .words = graph.has_words(),
          .class_names = graph.class_names,
          .feature_names = graph.feature_names};
}

void Known::check_fits(data::CitationGraph& graph, const std::string& path) const {
  const std::vector<size_t> places =
      data::places_of({.width = features, .names = feature_names}, graph.feature_names,
                      (std::filesystem::path(path) / "nodes.csv").string());
  if (graph.features != features)
    throw data::FileError(path, 0,
                          data::count_of(graph.features, "feature",
                                         fmt::format(", expected {} as in training", features)));
  if (graph.has_words() != words)
    throw data::FileError(path, 0, "features of another kind than in training");
  data::reorder(graph.values, places);
  if (!places.empty()) graph.feature_names = feature_names;
  std::vector<int64_t> known;
  for (const std::string& name : graph.class_names) {
    const auto found = std::find(class_names.begin(), class_names.end(), name);
    if (found == class_names.end())
      throw data::FileError(path, 0,
                            fmt::format("class {}, expected one of training's: {}",
                                        data::shown(name), fmt::join(class_names, ", ")));
    known.push_back(found - class_names.begin());
  }
  if (graph.class_names.empty() && graph.classes > classes)
    throw data::FileError(
        path, 0,
        data::count_of(graph.classes, "class",
                       fmt::format(", expected at most {} as in training", classes)));
  if (!known.empty())
    for (int64_t& label : graph.labels)
      if (label >= 0) label = known[static_cast<size_t>(label)];
  graph.class_names = class_names;
  graph.classes = classes;
}

}  // namespace fovea::systems::gat
