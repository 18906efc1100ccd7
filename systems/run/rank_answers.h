// evaluate and predict as one of several ranks: each does a part of the work, and rank 0 has all answers,
// in order. Does not include libtorch.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "systems/run/session.h"
#include "train/ranks/place.h"

namespace fovea::systems {

struct EvaluateRequest {
  std::string run = {}, data = {}, split = "test", device = "cpu";
  int threads = 1;
  std::vector<std::string> set = {};
};
// The report, on rank 0. `timeout`, in seconds, is how long another rank may be silent.
std::optional<Json> evaluate_as_rank(const EvaluateRequest& request, const train::Place& place,
                                     double timeout);

struct PredictRequest {
  std::string run = {}, device = "cpu";
  int threads = 1;
  std::vector<std::string> set = {};
  bool json = false;
};
// What rank 0 reads for all.
struct GivenText {
  std::string name, text;
};
struct Predicted {
  std::string answers;
  std::vector<std::string> refused, noted;  // messages, in the order of the lines
};
// All answers, on rank 0, which calls `given`. Where lines depend on each other, rank 0 answers all.
std::optional<Predicted> predict_as_rank(const PredictRequest& request, const train::Place& place,
                                         double timeout, const std::function<GivenText()>& given);

}  // namespace fovea::systems
