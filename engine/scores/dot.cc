// e = scale q.k, scale 1 / sqrt(E) unless given; it is folded into the key panels.
#include <algorithm>
#include <cmath>

#include "engine/registry.h"
#include "engine/scores/product_score.h"

namespace fovea::engine {

template <class T>
ScorePointer<T> make_dot(const StageContext& context) {
  const size_t width = context.geometry.query_width;
  const auto scale = std::get<Dot>(context.problem.score.kind).scale;
  const double natural = 1 / std::sqrt(static_cast<double>(std::max<size_t>(1, width)));
  return std::make_unique<ProductScore<T>>(width, static_cast<T>(scale.value_or(natural)));
}
template ScorePointer<float> make_dot<float>(const StageContext&);
template ScorePointer<double> make_dot<double>(const StageContext&);

}  // namespace fovea::engine
