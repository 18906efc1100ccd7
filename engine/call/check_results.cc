// Checks of the arrays for results and gradients.
#include <tuple>
#include <type_traits>

#include "engine/call/facts.h"
#include "engine/call/check.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

bool has_elements(const View& view) {
  for (int d = 0; d < view.rank; ++d) {
    if (view.size[d] == 0) return false;
  }
  return true;
}

// An array for a gradient: it has the shape of the array itself. An array that is absent must have
// none.
void check_like(const View& view, const ArgumentName& name, const View& array, DType dtype) {
  if (!view) return;
  FOVEA_CHECK(static_cast<bool>(array),
              name + ": given, expected nothing (the problem has no such array)");
  check_dtype(view, name, dtype);
  check_rank(view, name, array.rank);
  for (int d = 0; d < view.rank; ++d) check_size(view, name, d, array.size[d], "the array's");
}

Vector<View> arrays_of(auto choice) {
  Vector<View> arrays;
  choice.fields([&](const char*, auto& field) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, View>) arrays.push_back(field);
  });
  return arrays;
}

// A choice of another kind, or an empty one, means that no gradient is wanted.
template <class Variant>
void check_parameters(const Variant& wanted, const Variant& choice, const ArgumentName& name,
                      DType dtype) {
  const auto all = [](const Variant& v) {
    return std::visit([](const auto& c) { return arrays_of(c); }, v);
  };
  const Vector<View> places = all(wanted), arrays = all(choice);
  for (size_t n = 0; n < places.size(); ++n) {
    if (!places[n]) continue;
    FOVEA_CHECK(wanted.index() == choice.index(), name + ": another kind than the problem's");
    check_like(places[n], name, arrays[n], dtype);
  }
}

}  // namespace

void check_result(const Problem& problem, const Geometry& g, const Result& result) {
  const DType arithmetic = arithmetic_of(g.storage);
  const auto expect = [&](const View& view, const ArgumentName& name, DType dtype, int64_t last) {
    FOVEA_CHECK(view || !has_elements(problem.query), name + ": missing");
    check_dtype(view, name, dtype);
    const int rank = (g.packed ? 2 : 3) + (last > 0);
    check_rank(view, name, rank);
    for (int d = 0; d < (g.packed ? 2 : 3); ++d)
      check_size(view, name, d, problem.query.size[d], "the query's");
    if (last == 0) return;
    check_size(view, name, rank - 1, last, "its width");
    check_rows(view, name);
  };
  if (g.value_width > 0)
    expect(result.output, "output", g.storage, static_cast<int64_t>(g.value_width));
  if (result.lse) {
    check_lse<View>(problem.normaliser);
    expect(result.lse, "lse", arithmetic, 0);
  }
  if (result.statistics) expect(result.statistics, "statistics", arithmetic, kStatistics);
}

void check_gradients(const Problem& problem, const Geometry& g, const Gradients& gradients) {
  const DType arithmetic = arithmetic_of(g.storage);
  for (const auto& [view, name, array] :
       {std::tuple{&gradients.query, "gradients.query", &problem.query},
        {&gradients.key, "gradients.key", &problem.key},
        {&gradients.value, "gradients.value", &problem.value}}) {
    check_like(*view, name, *array, g.storage);
    if (*view) check_rows(*view, name);
  }
  Result shapes{.output = gradients.output, .lse = gradients.lse, .statistics = {}};
  check_result(problem, g, shapes);
  check_parameters(gradients.score.kind, problem.score.kind, "gradients.score", arithmetic);
  const auto &wanted = gradients.score.modifiers, &modifiers = problem.score.modifiers;
  FOVEA_CHECK(wanted.empty() || wanted.size() == modifiers.size(),
              "gradients.score.modifiers: " + std::to_string(wanted.size()) + ", expected " +
                  std::to_string(modifiers.size()) + " (the problem's) or none");
  for (size_t m = 0; m < wanted.size(); ++m) {
    check_parameters(wanted[m], modifiers[m], {"gradients.score.modifiers", m}, arithmetic);
  }
  check_parameters(gradients.normaliser, problem.normaliser, "gradients.normaliser", arithmetic);
}

}  // namespace fovea::engine
