// Attention itself: any combination of choices, shapes, types and layouts, forward and backward, on
// every path, against the reference within derived bounds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/reference/reference.h"
#include "engine/simd/hold.h"
#include "hwy/targets.h"
#include "tests/engine/arrays.h"
#include "tests/engine/comparison.h"
#include "tests/engine/draw.h"
#include "tests/engine/run.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

using cases::Built;
using cases::Case;

// The engine on one of its SIMD targets and one of its bfloat16 units, and let go again.
struct Held {
  explicit Held(Bytes& bytes) {
    static const std::vector<int64_t> simd = hwy::SupportedAndGeneratedTargets();
    engine::hold_simd_target(hwy::TargetName(simd[bytes.below(simd.size())]));
    if (bytes.flag()) engine::hold_bf16_unit("none");
  }
  ~Held() {
    engine::hold_simd_target(nullptr);
    engine::hold_bf16_unit(nullptr);
  }
};

// Work in another order, divided for another number of workers.
engine::Parallel backwards(size_t workers) {
  return {workers, [](size_t n, const std::function<void(size_t)>& body) {
            while (n-- > 0) body(n);
          }};
}

void check_agreement(Built& built, const std::string& name) {
  for (const Agreement& a : compare(built, serial()))
    require(a.within,
            fmt::format("{}: {} off by {:.3g}, allowed {:.3g}, {:.3g} times the naive run's", name,
                        a.array, a.error, a.bound, a.multiple));
}

bool same(const Numbers& a, const Numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

std::vector<Numbers> run(Built& built, const engine::Parallel& parallel) {
  engine::forward(built.problem, built.result, parallel);
  engine::backward(built.problem, built.result, built.gradients, parallel);
  std::vector<Numbers> all = {numbers(built.result.output)};
  for (const NamedView& array : arrays_of(built.gradients)) all.push_back(numbers(array.view));
  return all;
}

void check_order(Built& built, size_t workers, const std::string& name) {
  const auto once = run(built, serial()), again = run(built, backwards(workers));
  for (size_t i = 0; i < once.size(); ++i)
    require(same(once[i], again[i]), name + ": the division of work changes the result");
}

// Weights of chosen rows and heads, beside the reference's; not of packed tensors, nor of choices
// that a rounding can turn (the largest score of two that are nearly equal).
void check_weights(Built& built, Bytes& bytes, const std::string& name) {
  const engine::Problem& p = built.problem;
  const bool turns = std::holds_alternative<engine::Hard>(p.normaliser) ||
                     std::holds_alternative<engine::TopK>(p.normaliser);
  if (p.query.rank != 4 || p.query.size[2] == 0 || turns) return;
  const int64_t batch = p.query.size[0], heads = p.query.size[1], queries = p.query.size[2],
                keys = p.key.size[2];
  const auto row = static_cast<int64_t>(bytes.below(static_cast<size_t>(queries))),
             head = static_cast<int64_t>(bytes.below(static_cast<size_t>(heads)));
  const auto truth = reference::forward<double>(p);
  const auto naive = reference::forward<float>(p);
  const engine::DType type =
      p.query.dtype == engine::DType::kFloat64 ? engine::DType::kFloat64 : engine::DType::kFloat32;
  const engine::View chosen = built.storage.zeros(type, {batch, 1, 1, keys});
  engine::weights(p,
                  {.rows = built.storage.values(engine::DType::kInt32, {double(row)}),
                   .heads = built.storage.values(engine::DType::kInt32, {double(head)})},
                  {chosen, {}}, serial());
  const Numbers got = numbers(chosen);
  for (size_t r = 0; r < truth.rows.size(); ++r) {
    const auto& expected = truth.rows[r];
    if (expected.head != head || expected.query != row) continue;
    double scale = 0, error = 0;
    for (size_t n = 0; n < expected.keys.size(); ++n) {
      const double weight = expected.weights[n];
      if (!std::isfinite(weight)) return;
      scale = std::max(scale, std::fabs(weight));
      error = std::max(error, std::fabs(static_cast<double>(naive.rows[r].weights[n]) - weight));
    }
    // Twice the naive float run, and a few units in the last place; scores of the inputs' half types
    // are exact in both.
    const double bound = 2 * error + 64 * std::numeric_limits<float>::epsilon() * scale;
    Numbers row_of(static_cast<size_t>(keys), 0.0);
    for (size_t n = 0; n < expected.keys.size(); ++n)
      row_of[static_cast<size_t>(expected.keys[n])] += expected.weights[n];
    for (int64_t j = 0; j < keys; ++j) {
      const double difference = std::fabs(got[static_cast<size_t>(expected.batch * keys + j)] -
                                          row_of[static_cast<size_t>(j)]);
      require(difference <= bound, name + ": a weight off by " + std::to_string(difference) +
                                       ", allowed " + std::to_string(bound));
    }
  }
}

// But for one in 64, problems are small, a part of a tile or a few tiles: the reference takes longer
// than all else, and its time is a product of these sizes.
void keep_small(Case& c) {
  constexpr uint64_t kWholeOneIn = 64;
  if (c.seed % kWholeOneIn == 0) return;
  cases::Shape& shape = c.shape;
  shape.batch = 1 + shape.batch % 2;
  shape.queries %= 10;
  shape.keys %= 20;
  shape.width = 1 + shape.width % 12;
  shape.value_width = 1 + shape.value_width % 12;
}

void fuzz_attend(std::string_view input) {
  Bytes bytes(input);
  Case c = draw_case(
      [&](int64_t low, int64_t high) {
        return low + static_cast<int64_t>(bytes.below(static_cast<size_t>(high - low + 1)));
      },
      bytes.below(1 << 16));
  if (!well_formed(c)) return;
  keep_small(c);
  const Held held(bytes);
  Built built = cases::build(c);
  if (is_refused(built.problem)) {
    bool refused = false;
    try {
      engine::forward(built.problem, built.result, serial());
    } catch (const Unsupported&) {
      refused = true;
    }
    require(refused, c.name() + ": has no meaning and is computed");
    return;
  }
  // Beside another structure the special paths decline.
  if (bytes.flag()) built.problem.structure.all_of.push_back(engine::Dense{});
  switch (bytes.below(4)) {
    case 0:
      return check_order(built, 1 + bytes.below(9), c.name());
    case 1:
      return check_weights(built, bytes, c.name());
    default:
      return check_agreement(built, c.name());
  }
}
const Registration attend{"attend", fuzz_attend};

}  // namespace
}  // namespace fovea::fuzz
