// A step under a cache: the last rows of a problem, given with all its keys and query_offset, have
// the output, log-sum-exp, weights and query gradient of the same rows in the whole. For every
// structure and modifier; random numbers follow the position too.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "engine/reference/structure.h"
#include "tests/engine/arrays.h"
#include "tests/engine/bounds.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Built;
using cases::Case;
using cases::Storage;
using engine::DType;
using engine::View;

const double kClose = bounds::rounded(1), kCloseInDouble = bounds::rounded(1, bounds::kDoubleUlp);
constexpr int64_t kSteps[] = {1, 3, 17};

// Rows [first, first + n) of each item's queries.
struct Rows {
  std::vector<int64_t> first, n;
};

// The element of an array that broadcasts to four dimensions, aligned to the right.
double at(const View& view, std::array<int64_t, 4> index) {
  int64_t offset = 0;
  for (int d = 0; d < view.rank; ++d)
    offset += (view.size[d] == 1 ? 0 : index[4 - view.rank + d]) * view.stride[d];
  return Storage::get(view, offset);
}

class Step {
 public:
  // The last n rows of each item; `ends` says where an item's rows end where that is not all.
  Step(Built& whole, int64_t n, const std::vector<int64_t>& ends = {})
      : whole_(whole), structure_(whole.problem), rows_(n) {
    for (const auto& sequence : structure_.sequences()) {
      const int64_t end = ends.empty() ? sequence.queries : ends[sequence.batch];
      items_.n.push_back(std::min(n, end));
      items_.first.push_back(end - items_.n.back());
    }
  }

  // False for blocks that the step would cut.
  bool build() {
    step_.problem = whole_.problem;
    step_.problem.query = take(whole_.problem.query);
    step_.gradients.output = take(whole_.gradients.output);
    step_.gradients.query =
        step_.storage.zeros_like(step_.problem.query, whole_.problem.query.dtype);
    step_.result.output =
        step_.storage.zeros_like(step_.gradients.output, whole_.problem.query.dtype);
    const auto& n = step_.problem.query.size;
    const DType type = whole_.result.statistics.dtype;
    const bool packed = structure_.packed();
    const auto per_row = [&](int64_t last) {
      return packed ? step_.storage.zeros(type, {n[0], n[1], last})
                    : step_.storage.zeros(type, {n[0], n[1], n[2], last});
    };
    step_.result.statistics = per_row(engine::kStatistics);
    if (whole_.result.lse) {
      step_.result.lse = per_row(1);
      --step_.result.lse.rank;
      step_.gradients.lse = take_numbers(whole_.gradients.lse);
    }
    bool bottom_right = false;
    bool whole_blocks = true;
    choice::each_kind(step_.problem.structure, [&]<class Kind>(Kind& kind) {
      whole_blocks = slice(kind) && whole_blocks;
      if constexpr (std::is_same_v<Kind, engine::Causal>)
        bottom_right |= kind.alignment == choice::Alignment::kBottomRight;
    });
    if (!whole_blocks) return false;
    std::visit([&](auto& kind) { slice(kind); }, step_.problem.score.kind);
    for (auto& modifier : step_.problem.score.modifiers) {
      if (auto* bias = std::get_if<engine::Bias>(&modifier)) bias->bias = take_pairs(bias->bias);
    }
    if (!bottom_right) {  // which is an offset of its own
      step_.problem.query_offset =
          step_.storage.values(DType::kInt32, Numbers(items_.first.begin(), items_.first.end()));
    }
    return true;
  }

  void compare(double tolerance) {
    run_forward(whole_);
    engine::backward(whole_.problem, whole_.result, whole_.gradients, serial());
    run_forward(step_);
    engine::backward(step_.problem, step_.result, step_.gradients, serial());
    const auto same = [&](const View& got, const View& expected, const char* what) {
      expect_same(numbers(got), numbers(expected), tolerance, what);
    };
    same(step_.result.output, take(whole_.result.output), "output");
    same(step_.gradients.query, take(whole_.gradients.query), "query gradient");
    if (whole_.result.lse) same(step_.result.lse, take_numbers(whole_.result.lse), "lse");
    if (!structure_.packed()) compare_weights(tolerance);
  }

 private:
  int64_t items() const { return static_cast<int64_t>(items_.first.size()); }
  int64_t heads() const { return whole_.problem.query.size[1]; }
  int64_t keys() const { return whole_.problem.key.size[2]; }

  // Rows of a query-sided array [B, H, L, E] or (total, H, E).
  View take(const View& array) {
    const int64_t width = array.size[array.rank - 1];
    if (!structure_.packed()) {
      const View out = step_.storage.zeros(array.dtype, {items(), heads(), rows_, width});
      fill(out, [&](int64_t b, int64_t h, int64_t i, int64_t e) {
        return at(array, {b, h, items_.first[b] + i, e});
      });
      return out;
    }
    int64_t total = 0;
    for (int64_t n : items_.n) total += n;
    const View out = step_.storage.zeros(array.dtype, {total, heads(), width});
    int64_t row = 0;
    for (const auto& sequence : structure_.sequences()) {
      const int64_t first = sequence.first_query + items_.first[sequence.batch];
      for (int64_t i = 0; i < items_.n[sequence.batch]; ++i, ++row) {
        for (int64_t h = 0; h < heads(); ++h) {
          for (int64_t e = 0; e < width; ++e)
            Storage::set(out, row * out.stride[0] + h * out.stride[1] + e,
                         at(array, {0, first + i, h, e}));
        }
      }
    }
    return out;
  }
  // Of an array with one number a row, [B, H, L] or (total, H).
  View take_numbers(View array) {
    array.size[array.rank] = 1;
    array.stride[array.rank++] = 1;
    View out = take(array);
    --out.rank;
    return out;
  }
  // Of an array that broadcasts to [B, H, L, S].
  View take_pairs(const View& array) {
    const int64_t longest = *std::max_element(items_.n.begin(), items_.n.end()),
                  columns = array.size[array.rank - 1];
    const View out = step_.storage.zeros(array.dtype, {items(), heads(), longest, columns});
    fill(out, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
      return i < items_.n[b] ? at(array, {b, h, items_.first[b] + i, j}) : 0;
    });
    return out;
  }

  template <class Get>
  static void fill(const View& out, const Get& get) {
    const auto& n = out.size;
    for (int64_t a = 0; a < n[0]; ++a)
      for (int64_t b = 0; b < n[1]; ++b)
        for (int64_t c = 0; c < n[2]; ++c)
          for (int64_t d = 0; d < n[3]; ++d) {
            Storage::set(
                out, a * out.stride[0] + b * out.stride[1] + c * out.stride[2] + d * out.stride[3],
                get(a, b, c, d));
          }
  }

  bool slice(engine::Keep& keep) {
    keep.mask = take_pairs(keep.mask);
    return true;
  }
  bool slice(engine::Documents& documents) {
    const View ids = step_.storage.zeros(DType::kInt32, {items(), rows_});
    for (int64_t b = 0; b < items(); ++b)
      for (int64_t i = 0; i < rows_; ++i)
        Storage::set(ids, b * rows_ + i, at(documents.query_ids, {0, 0, b, items_.first[b] + i}));
    documents.query_ids = ids;
    return true;
  }
  bool slice(engine::Blocks& blocks) {
    if (items_.first[0] % blocks.size != 0) return false;
    const int64_t from = items_.first[0] / blocks.size;
    blocks.mask.data = static_cast<char*>(blocks.mask.data) + from * blocks.mask.stride[2];
    blocks.mask.size[2] -= from;
    return true;
  }
  bool slice(engine::Ragged& ragged) {
    Numbers offsets = {0};
    for (int64_t n : items_.n) offsets.push_back(offsets.back() + static_cast<double>(n));
    ragged.query_offsets = step_.storage.values(DType::kInt32, offsets);
    return true;
  }
  bool slice(engine::Graph& graph) {
    Numbers offsets, columns;
    const double from = at(graph.row_offsets, {0, 0, 0, items_.first[0]});
    for (int64_t i = 0; i <= items_.n[0]; ++i)
      offsets.push_back(at(graph.row_offsets, {0, 0, 0, items_.first[0] + i}) - from);
    for (auto e = static_cast<int64_t>(from); e < graph.columns.size[0]; ++e)
      columns.push_back(at(graph.columns, {0, 0, 0, e}));
    graph.row_offsets = step_.storage.values(DType::kInt32, offsets);
    graph.columns = step_.storage.values(DType::kInt32, columns);
    return true;
  }
  void slice(engine::Kernel& kernel) {
    if (kernel.bandwidth.rank == 3) kernel.bandwidth = take_numbers(kernel.bandwidth);
  }
  template <class Positional>
  bool slice(Positional&) {
    return true;
  }
  void compare_weights(double tolerance) {
    const DType type = whole_.result.statistics.dtype;
    const int64_t all = whole_.problem.query.size[2];
    const View got = step_.storage.zeros(type, {items(), heads(), rows_, keys()}),
               expected = step_.storage.zeros(type, {items(), heads(), all, keys()});
    engine::weights(step_.problem, {}, {got, {}}, serial());
    engine::weights(whole_.problem, {}, {expected, {}}, serial());
    expect_same(numbers(got), numbers(take(expected)), tolerance, "weights");
  }

  Built& whole_;
  const reference::Structure structure_;
  const int64_t rows_;
  Rows items_;
  Built step_{Storage(1), {}, {}, {}};
};

bool has_meaning(const Built& built) {
  try {
    engine::explain_dispatch(built.problem);
    return true;
  } catch (const Unsupported&) {
    return false;
  }
}

// How many steps of a case were compared.
int compare_steps(const Case& c, double tolerance) {
  SCOPED_TRACE(c.name());
  int ran = 0;
  for (const int64_t n : kSteps) {
    SCOPED_TRACE("the last " + std::to_string(n) + " rows");
    Built whole = cases::build(c);
    if (!has_meaning(whole)) continue;
    Step step(whole, n);
    if (!step.build()) continue;
    step.compare(tolerance);
    ++ran;
  }
  return ran;
}

std::vector<std::vector<std::string>> all_structures() {
  std::vector<std::vector<std::string>> all = {{"ragged", "causal"},
                                               {"ragged", "window"},
                                               {"ragged", "prefix_per_item"},
                                               {"ragged", "causal_bottom_right", "window"},
                                               {"graph", "causal"},
                                               {"graph_shuffled", "window"},
                                               {"causal", "window_left"},
                                               {"strided", "documents_per_batch"},
                                               {"prefix", "keep"},
                                               {"causal_bottom_right", "window"}};
  for (const auto& row : cases::structures()) all.push_back({row.name});
  return all;
}

TEST(Step, EqualsTheLastRowsOfTheWholeForEveryStructureAndModifier) {
  for (const auto& structure : all_structures()) {
    Case c{.structure = structure, .shape = {2, 2, 1, 37, 37, 4, 3}, .dtype = DType::kFloat64};
    EXPECT_GT(compare_steps(c, kCloseInDouble), 0) << c.name();
    for (const auto& modifier : cases::modifiers()) {
      c.modifiers = {modifier.name};
      c.dropout_p = 0.2;
      EXPECT_GT(compare_steps(c, kCloseInDouble), 0) << c.name();
    }
  }
}

TEST(Step, EqualsTheLastRowsOfTheWholeForEveryScoreAndNormaliser) {
  for (const auto& normaliser : cases::normalisers()) {
    for (const auto& score : cases::scores()) {
      compare_steps({.score = score.name,
                     .normaliser = normaliser.name,
                     .structure = {"causal"},
                     .shape = {1, 2, 1, 23, 23, 4, 3},
                     .dtype = DType::kFloat64,
                     .dropout_p = 0.2},
                    kCloseInDouble);
    }
  }
}

// Long enough for the paths that serve long keys, few queries and strides.
TEST(Step, EqualsTheLastRowsOfTheWholeOnEveryPath) {
  for (const auto& structure : all_structures()) {
    const Case c{
        .structure = structure, .shape = {1, 2, 1, 300, 300, 16, 16}, .dtype = DType::kFloat32};
    EXPECT_GT(compare_steps(c, kClose), 0) << c.name();
  }
}

TEST(Step, OfItemsOfTheirOwnLengthsEndsWhereEachEnds) {
  for (const auto& structure : all_structures()) {
    for (const char* modifier : {"relative", "alibi", "custom", "bias"}) {
      const Case c{.modifiers = {modifier},
                   .structure = structure,
                   .shape = {2, 2, 1, 37, 37, 4, 3},
                   .dtype = DType::kFloat64};
      SCOPED_TRACE(c.name());
      Built whole = cases::build(c);
      const bool bottom_right =
          std::find(structure.begin(), structure.end(), "causal_bottom_right") != structure.end();
      const reference::Structure truth(whole.problem);
      if (truth.packed() || bottom_right || structure[0] == "blocks") continue;
      whole.problem.key_lengths = whole.storage.values(DType::kInt32, {37, 23});
      for (const int64_t n : kSteps) {
        Step step(whole, n, {37, 23});
        ASSERT_TRUE(step.build());
        step.compare(kCloseInDouble);
      }
    }
  }
}

TEST(Step, ANumberIsTheSameForEveryItem) {
  Built all = cases::build(
            {.modifiers = {"alibi"}, .structure = {"window"}, .shape = {2, 2, 1, 3, 9, 4, 3}}),
        each = cases::build(
            {.modifiers = {"alibi"}, .structure = {"window"}, .shape = {2, 2, 1, 3, 9, 4, 3}});
  all.problem.query_offset = 5;
  each.problem.query_offset = each.storage.values(DType::kInt32, {5, 5});
  const Numbers expected = run_forward(each).output;
  expect_same(run_forward(all).output, expected, 0, "a number");
  all.problem.query_offset = all.storage.values(DType::kInt32, {5});
  expect_same(run_forward(all).output, expected, 0, "an array of one");
  all.problem.query_offset = 0;
  EXPECT_NE(run_forward(all).output, expected);
}

}  // namespace
}  // namespace fovea
