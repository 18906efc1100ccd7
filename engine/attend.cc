// The entry points: check what was given, choose a path, run it.
#include <algorithm>
#include <type_traits>
#include <variant>

#include "engine/call/check.h"
#include "engine/call/overlap.h"
#include "engine/call/pages.h"
#include "engine/call/plain.h"
#include "engine/call/view.h"
#include "engine/call/wanted.h"
#include "engine/call/work.h"
#include "engine/dispatch.h"
#include "engine/runtime/parallel.h"

namespace fovea::engine {
namespace {

template <class T>
void clear(const View& view) {
  const auto size = [&](int d) { return d < view.rank ? view.size[d] : 1; };
  for (int64_t a = 0; a < size(0); ++a)
    for (int64_t b = 0; b < size(1); ++b)
      for (int64_t c = 0; c < size(2); ++c)
        for (int64_t d = 0; d < size(3); ++d) element<T>(view, a, b, c, d) = 0;
}

// Zeroes every array a choice refers to.
template <class T, class Choice>
void clear_fields(Choice choice) {
  choice.fields([]<class Field>(const char*, Field& field) {
    if constexpr (std::is_same_v<Field, View>) {
      if (field) clear<T>(field);
    }
  });
}

template <class T>
void clear_parameters(const Gradients& gradients) {
  std::visit([](const auto& kind) { clear_fields<T>(kind); }, gradients.score.kind);
  for (const auto& modifier : gradients.score.modifiers) {
    std::visit([](const auto& kind) { clear_fields<T>(kind); }, modifier);
  }
  std::visit([](const auto& kind) { clear_fields<T>(kind); }, gradients.normaliser);
}

// Weights do not depend on values. Any array with as many rows takes the place of the values, and
// what modifiers add to values is left out.
Problem with_some_value(Problem problem) {
  if (problem.value) return problem;
  problem.value = problem.key;
  const int last = problem.key.rank - 1;
  if (last >= 0) problem.value.size[last] = std::min<int64_t>(problem.key.size[last], 1);
  for (Modifier& modifier : problem.score.modifiers)
    if (auto* relative = std::get_if<Relative>(&modifier)) relative->value_table = {};
  return problem;
}

}  // namespace

void forward(const Problem& problem, const Result& result, const Parallel& given) {
  Geometry geometry;
  if (!resolve_plain(problem, result, &geometry)) {
    geometry = resolve(problem);
    check_result(problem, geometry, result);
    check_places(problem, result);
  }
  const Parallel parallel =
      given.workers > 1 ? worth(given, forward_work(problem, geometry)) : Parallel{};
  const Path* path = find_path({Task::kForward, problem, geometry, parallel, &result});
  if (!path) return forward(CopiedPages(problem, geometry, parallel).problem(), result, given);
  const int64_t empty = visit_arithmetic(geometry.storage, [&]<class T>() {
    return path->drivers<T>().forward(problem, geometry, result, parallel);
  });
  if (result.empty_rows) *result.empty_rows = empty;
}

void backward(const Problem& problem, const Result& saved, const Gradients& given,
              const Parallel& workers) {
  const Geometry geometry = resolve(problem);
  const Parallel parallel = worth(workers, backward_work(problem, geometry));
  check_result(problem, geometry, saved);
  FOVEA_CHECK(saved.statistics || geometry.max_queries * geometry.heads == 0,
              "statistics: missing, expected what forward wrote");
  check_gradients(problem, geometry, given);
  check_places(problem, saved, given);
  const auto completed = with_every_choice(problem, given);
  const Gradients& gradients = completed ? *completed : given;
  const Path* path = find_path({Task::kBackward, problem, geometry, parallel, &saved, &gradients});
  if (!path) {
    CopiedPages copied(problem, geometry, parallel);
    backward(copied.problem(), saved, copied.places(gradients), workers);
    return copied.add_up(gradients, parallel);
  }
  visit_arithmetic(geometry.storage, [&]<class T>() {
    clear_parameters<T>(gradients);
    path->drivers<T>().backward(problem, geometry, saved, gradients, parallel);
  });
}

void weights(const Problem& asked, const Selection& selection, const SelectedWeights& out,
             const Parallel& given) {
  const Problem problem = with_some_value(asked);
  const Geometry geometry = resolve(problem);
  const Parallel parallel = worth(given, forward_work(problem, geometry));
  check_places(problem, selection, out);
  const Path* path = find_path({Task::kWeights, problem, geometry, parallel});
  if (!path)
    return weights(CopiedPages(problem, geometry, parallel).problem(), selection, out, given);
  visit_arithmetic(geometry.storage, [&]<class T>() {
    path->drivers<T>().weights(problem, geometry, selection, out, parallel);
  });
}

}  // namespace fovea::engine
