// The seven set predictors of Pineda, Salvador, Drozdzal & Romero 2019, as a table: what turns regions
// into labels, and what it is taught by.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fovea::systems::image_to_set {

enum class Body : uint8_t {
  kFeedForward,  // every label at once
  kLstm,         // one label after another, until the end is said
  kTransformer,
};
enum class Lesson : uint8_t {
  kBinary,        // cross entropy of each label by itself
  kIou,           // 1 - soft intersection over union
  kDistribution,  // cross entropy with t / |t|
  kSequence,      // cross entropy of the next label, true labels before it
  kSet,  // binary, of each label's largest probability over the steps; no true labels before
};

struct Predictor {
  const char* name;
  Body body;
  Lesson lesson;
  const char* words;  // what it is, for the page

  bool steps() const { return body != Body::kFeedForward; }
};

std::span<const Predictor> predictors();
std::vector<std::string> predictor_names();
// InvalidArgument where there is none of that name.
const Predictor& predictor_named(const std::string& name);

}  // namespace fovea::systems::image_to_set
