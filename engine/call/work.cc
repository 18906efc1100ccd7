#include "engine/call/work.h"

namespace fovea::engine {
namespace {

// What a pair costs besides its products: a softmax and passes over the scores.
constexpr double kPair = 16;
// A score other than a product has a function to compute for each feature; a normaliser that solves
// for a threshold goes over its row several times.
constexpr double kFunction = 8;

double pairs_of(const Geometry& g) {
  const double heads = static_cast<double>(g.heads);
  if (g.graph) return heads * static_cast<double>(g.graph->columns.size[0]);
  return heads * static_cast<double>(g.batches) * static_cast<double>(g.max_queries) *
         static_cast<double>(g.max_keys);
}

double of_pairs(const Problem& problem, const Geometry& g, double keys, double values) {
  const bool product = std::holds_alternative<Dot>(problem.score.kind) ||
                       std::holds_alternative<Bilinear>(problem.score.kind),
             softmax = std::holds_alternative<Softmax>(problem.normaliser);
  const double pair =
      kPair + keys * static_cast<double>(g.key_width) + values * static_cast<double>(g.value_width);
  return pairs_of(g) * pair * (product && softmax ? 1 : kFunction);
}

}  // namespace

double forward_work(const Problem& problem, const Geometry& geometry) {
  return of_pairs(problem, geometry, 1, 1);
}
// Scores again, then four products.
double backward_work(const Problem& problem, const Geometry& geometry) {
  return of_pairs(problem, geometry, 3, 2);
}

}  // namespace fovea::engine
