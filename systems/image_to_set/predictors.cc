#include "systems/image_to_set/predictors.h"

#include "fovea/error.h"

namespace fovea::systems::image_to_set {
namespace {

constexpr Predictor kTable[] = {
    {"ff-bce", Body::kFeedForward, Lesson::kBinary, "feed-forward, binary cross entropy"},
    {"ff-iou", Body::kFeedForward, Lesson::kIou, "feed-forward, soft IoU"},
    {"ff-distribution", Body::kFeedForward, Lesson::kDistribution,
     "feed-forward, target distribution"},
    {"lstm", Body::kLstm, Lesson::kSequence, "LSTM, one label after another"},
    {"lstm-set", Body::kLstm, Lesson::kSet, "LSTM, pooled over its steps"},
    {"transformer", Body::kTransformer, Lesson::kSequence, "Transformer, one label after another"},
    {"transformer-set", Body::kTransformer, Lesson::kSet, "Transformer, pooled over its steps"},
};

}  // namespace

std::span<const Predictor> predictors() { return kTable; }

std::vector<std::string> predictor_names() {
  std::vector<std::string> out;
  for (const Predictor& one : kTable) out.emplace_back(one.name);
  return out;
}

const Predictor& predictor_named(const std::string& name) {
  for (const Predictor& one : kTable)
    if (name == one.name) return one;
  throw InvalidArgument("predictor: " + name + ", expected one of the table's");
}

}  // namespace fovea::systems::image_to_set
