// e = q_j: the query is the row of scores.
#pragma once

namespace fovea::cuda {

struct Location : ProductScore {
  static constexpr bool kDirect = true, kGivesQuery = true;
  static T value(const Operand* query, int j) { return widen(query[j]); }
};

}  // namespace fovea::cuda
