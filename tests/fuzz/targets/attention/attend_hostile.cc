// Attention called wrongly: views, numbers and index arrays that a caller's mistake would bring.
// Refused or not, nothing outside the arrays is touched.
#include <cmath>
#include <limits>

#include "tests/engine/draw.h"
#include "tests/engine/run.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

using engine::DType;
using engine::View;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(),
                  kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kWholes[] = {
    0,         -1,    -2,     1,         2,
    3,         7,     64,     65,        1 << 20,
    kMost / 2, kMost, kLeast, kMost - 1, std::numeric_limits<int32_t>::max()};
const double kReals[] = {0.0,
                         -0.0,
                         1.0,
                         -1.0,
                         2.0,
                         0.5,
                         1e-300,
                         1e300,
                         1e-45,
                         3e38,
                         65504,
                         1.0 + 1e-7,
                         std::numeric_limits<double>::infinity(),
                         -std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::quiet_NaN()};

template <class List>
auto any(const List& list, Bytes& bytes) {
  return list[bytes.below(std::size(list))];
}

// Everything in a problem that a caller sets.
struct Parts {
  std::vector<View*> views;
  std::vector<int64_t*> wholes;
  std::vector<double*> reals;

  void operator()(const char*, View& view) { views.push_back(&view); }
  void operator()(const char*, int64_t& whole) { wholes.push_back(&whole); }
  void operator()(const char*, double& real) { reals.push_back(&real); }
  void operator()(const char*, std::optional<double>& real) { reals.push_back(&real.emplace(1)); }
  template <class Other>
  void operator()(const char*, Other&) {}

  template <class Choices>
  void add(Choices& choice) {
    std::visit([this](auto& kind) { kind.fields(*this); }, choice);
  }
};

Parts parts_of(cases::Built& built) {
  engine::Problem& p = built.problem;
  Parts parts;
  parts.views = {&p.query, &p.key, &p.value, &p.key_lengths};
  parts.reals = {&p.dropout_p};
  parts.add(p.score.kind);
  for (auto& modifier : p.score.modifiers) parts.add(modifier);
  parts.add(p.normaliser);
  choice::each_kind(p.structure, [&](auto& kind) { kind.fields(parts); });
  for (View* view :
       {&built.result.output, &built.result.lse, &built.result.statistics, &built.gradients.output,
        &built.gradients.lse, &built.gradients.query, &built.gradients.key, &built.gradients.value})
    parts.views.push_back(view);
  return parts;
}

// One view made wrong in a way that, taken literally, stays inside the memory it had.
void damage(View& view, Bytes& bytes) {
  const int rank = std::max(1, view.rank);
  const auto dimension = static_cast<size_t>(bytes.below(static_cast<size_t>(rank)));
  switch (bytes.below(6)) {
    case 0:
      view = {};
      break;
    case 1:
      view.rank = static_cast<int>(bytes.below(5));
      for (int d = rank; d < view.rank; ++d) view.size[static_cast<size_t>(d)] = 1;
      break;
    case 2:
      if (view.size[dimension] > 0)
        view.size[dimension] =
            static_cast<int64_t>(bytes.below(static_cast<size_t>(view.size[dimension])));
      break;
    case 3:
      view.size[dimension] = -1;
      break;
    case 4:
      if (view.dtype != DType::kBool)
        view.dtype = view.dtype == DType::kFloat64   ? DType::kInt32
                     : view.dtype == DType::kFloat32 ? DType::kBFloat16
                                                     : DType::kBool;
      break;
    default:
      if (view.size[dimension] <= 1) view.stride[dimension] = kMost;
  }
}

// What the array holds.
void scribble(const View& view, Bytes& bytes) {
  if (!view) return;
  const bool whole = view.dtype == DType::kInt32;
  const size_t every = 1 + bytes.below(16);
  size_t n = bytes.below(every);
  cases::Storage::each(view, [&](int64_t at) {
    if (n++ % every != 0) return;
    if (whole) {
      const auto number = static_cast<int32_t>(any(kWholes, bytes));
      static_cast<int32_t*>(view.data)[at] = number;
    } else if (view.dtype != DType::kBool) {
      cases::Storage::set(view, at, any(kReals, bytes));
    }
  });
}

void fuzz_attend_hostile(std::string_view input) {
  Bytes bytes(input);
  cases::Case c = draw_case(
      [&](int64_t low, int64_t high) {
        return low + static_cast<int64_t>(bytes.below(static_cast<size_t>(high - low + 1)));
      },
      bytes.below(256));
  c.content = cases::Content::kPlain;
  if (!well_formed(c)) return;
  cases::Built built = cases::build(c);
  Parts parts = parts_of(built);
  for (size_t mistakes = 1 + bytes.below(3); mistakes > 0; --mistakes) {
    switch (bytes.below(4)) {
      case 0:
        damage(*any(parts.views, bytes), bytes);
        break;
      case 1:
        scribble(*any(parts.views, bytes), bytes);
        break;
      case 2:
        if (!parts.wholes.empty()) *any(parts.wholes, bytes) = any(kWholes, bytes);
        break;
      default:
        *any(parts.reals, bytes) = any(kReals, bytes);
    }
  }
  if (accepts([&] { engine::forward(built.problem, built.result, serial()); }))
    accepts([&] { engine::backward(built.problem, built.result, built.gradients, serial()); });
  const View chosen =
      built.storage.zeros(c.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32,
                          {c.shape.batch, c.shape.heads, c.shape.queries, c.shape.keys});
  accepts([&] { engine::weights(built.problem, {}, {chosen, {}}, serial()); });
  accepts([&] { engine::explain_dispatch(built.problem); });
}
const Registration attend_hostile{"attend_hostile", fuzz_attend_hostile};

}  // namespace
}  // namespace fovea::fuzz
