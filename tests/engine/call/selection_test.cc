// Selected weights against the reference's rows: whole, chosen, the largest, sums over rows, one
// for each edge.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "cases/cases.h"
#include "engine/reference/reference.h"
#include "tests/engine/bounds.h"

namespace fovea {
namespace {

using cases::Case;
using engine::DType;
using engine::View;

struct Truth {
  explicit Truth(const engine::Problem& problem) {
    for (auto& row : reference::forward<double>(problem).rows)
      rows[{row.batch, row.head, row.query}] = row;
  }
  const reference::WeightRow<double>* at(int64_t b, int64_t h, int64_t i) const {
    const auto it = rows.find({b, h, i});
    return it == rows.end() ? nullptr : &it->second;
  }
  std::map<std::array<int64_t, 3>, reference::WeightRow<double>> rows;
};

const std::vector<std::vector<std::string>> kStructures = {
    {"dense"},  {"causal"},  {"window"}, {"keep"},
    {"ragged"}, {"strided"}, {"graph"},  {"graph", "causal"}};

Case case_of(const std::vector<std::string>& structure, const char* normaliser) {
  return {.normaliser = normaliser,
          .structure = structure,
          .shape = {.heads = 4, .key_heads = 2, .queries = 70, .keys = 600, .width = 8},
          .key_lengths = true};
}

void expect_largest(const Case& c) {
  SCOPED_TRACE(c.name());
  constexpr int64_t kTop = 5;
  cases::Built built = cases::build(c);
  const auto& p = built.problem;
  const bool packed = p.query.rank == 3;
  const Truth truth(p);
  int64_t queries = packed ? 0 : p.query.size[2], batches = packed ? 0 : p.query.size[0];
  for (const auto& [at, row] : truth.rows)
    queries = std::max(queries, at[2] + 1), batches = std::max(batches, at[0] + 1);
  const int64_t heads = p.query.size[1];
  const View w = built.storage.zeros(DType::kFloat32, {batches, heads, queries, kTop});
  const View index = built.storage.zeros(DType::kInt32, {batches, heads, queries, kTop});
  engine::weights(p, {.top_k = kTop}, {.weights = w, .indices = index}, engine::default_parallel());
  int64_t checked = 0;
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < queries; ++i) {
        const auto* row = truth.at(b, h, i);
        std::vector<size_t> order(row ? row->keys.size() : 0);
        std::iota(order.begin(), order.end(), size_t{0});
        if (row)
          std::stable_sort(order.begin(), order.end(),
                           [&](size_t x, size_t y) { return row->weights[x] > row->weights[y]; });
        for (int64_t k = 0; k < kTop; ++k) {
          const int64_t at = ((b * heads + h) * queries + i) * kTop + k;
          const float got = static_cast<float*>(w.data)[at];
          const int32_t key = static_cast<int32_t*>(index.data)[at];
          if (k >= static_cast<int64_t>(order.size())) {
            EXPECT_EQ(key, -1);
            EXPECT_EQ(got, 0);
            continue;
          }
          const double want = row->weights[order[static_cast<size_t>(k)]];
          const double scale = std::max(1.0, row->weights[order[0]]);
          expect_close(got, want, bounds::rounded(scale));
          // Where the next weight is close, float32 may order them the other way.
          const auto found = std::find(row->keys.begin(), row->keys.end(), key);
          ASSERT_NE(found, row->keys.end());
          expect_close(row->weights[static_cast<size_t>(found - row->keys.begin())], want,
                       2 * bounds::rounded(scale));
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 100);
}

TEST(Selection, LargestOfEachRow) {
  for (const auto& structure : kStructures) {
    for (const char* normaliser : {"softmax", "sigmoid", "unnormalised"})
      expect_largest(case_of(structure, normaliser));
  }
}

TEST(Selection, ChosenRowsAndHeads) {
  for (const auto& structure : kStructures) {
    Case c = case_of(structure, "softmax");
    SCOPED_TRACE(c.name());
    c.shape.batch = 1;
    cases::Built built = cases::build(c);
    const Truth truth(built.problem);
    std::vector<int32_t> rows = {3, 0, 1, 2, 5, 6, 7, 8}, heads = {2, 1};
    const View w = built.storage.floats(DType::kFloat32, {1, 2, 8, 600}, 5, 6);
    View out = w;
    int64_t keys = 0;
    for (const auto& part : built.problem.structure.all_of) {
      if (const auto* ragged = std::get_if<engine::Ragged>(&part))
        keys = static_cast<int32_t*>(ragged->key_offsets.data)[1];
    }
    if (built.problem.query.rank == 3) {
      const int64_t n = keys ? keys : built.problem.key.size[0];
      out = built.storage.zeros(DType::kFloat32, {1, 2, 8, n});
      for (int32_t& r : rows)
        r = std::min<int32_t>(r, static_cast<int32_t>(built.problem.query.size[0]) - 1);
    }
    engine::weights(built.problem,
                    {.rows = View::of(rows.data(), DType::kInt32, {8}),
                     .heads = View::of(heads.data(), DType::kInt32, {2})},
                    {.weights = out}, engine::default_parallel());
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t r = 0; r < 8; ++r) {
        std::vector<double> want(static_cast<size_t>(out.size[3]), 0);
        if (const auto* row =
                truth.at(0, heads[static_cast<size_t>(h)], rows[static_cast<size_t>(r)])) {
          for (size_t n = 0; n < row->keys.size(); ++n)
            want[static_cast<size_t>(row->keys[n])] += row->weights[n];
        }
        for (int64_t j = 0; j < out.size[3]; ++j) {
          expect_close(static_cast<float*>(out.data)[(h * 8 + r) * out.size[3] + j],
                       want[static_cast<size_t>(j)], bounds::rounded(1));
        }
      }
    }
  }
}

TEST(Selection, SumsOverRows) {
  for (const auto& structure : kStructures) {
    Case c = case_of(structure, "softmax");
    c.shape.batch = 1;
    SCOPED_TRACE(c.name());
    cases::Built built = cases::build(c);
    const auto& p = built.problem;
    int64_t keys = p.key.size[p.key.rank - 2];
    if (p.query.rank == 3) keys = p.key.size[0];
    const View out = built.storage.zeros(DType::kFloat32, {1, 4, keys});
    engine::weights(p, {.column_sums = true}, {.weights = out}, engine::default_parallel());
    std::vector<double> want(static_cast<size_t>(4 * keys), 0);
    for (const auto& [at, row] : Truth(p).rows) {
      for (size_t n = 0; n < row.keys.size(); ++n)
        want[static_cast<size_t>(at[1] * keys + row.keys[n])] += row.weights[n];
    }
    for (size_t i = 0; i < want.size(); ++i)
      expect_close(static_cast<float*>(out.data)[i], want[i],
                   bounds::rounded(std::max(1.0, want[i])));
  }
}

TEST(Selection, OneForEachEdge) {
  Case c = case_of({"graph_shuffled"}, "softmax");
  c.key_lengths = false;
  cases::Built built = cases::build(c);
  const auto& graph = std::get<engine::Graph>(built.problem.structure.all_of[0]);
  const int64_t edges = graph.columns.size[0];
  const View out = built.storage.zeros(DType::kFloat32, {edges, 4});
  engine::weights(built.problem, {}, {.weights = out}, engine::default_parallel());
  const Truth truth(built.problem);
  for (int64_t i = 0; i + 1 < graph.row_offsets.size[0]; ++i) {
    const auto* offsets = static_cast<int32_t*>(graph.row_offsets.data);
    for (int64_t h = 0; h < 4; ++h) {
      const auto* row = truth.at(0, h, i);
      for (int32_t e = offsets[i]; e < offsets[i + 1]; ++e) {
        ASSERT_TRUE(row);
        expect_close(static_cast<float*>(out.data)[e * 4 + h],
                     row->weights[static_cast<size_t>(e - offsets[i])], bounds::rounded(1));
      }
    }
  }
}

TEST(Selection, BadSelections) {
  cases::Built built = cases::build({});
  const View w = built.storage.zeros(DType::kFloat32, {2, 2, 5, 3});
  std::vector<int32_t> rows = {7};
  EXPECT_THROW(engine::weights(built.problem, {.rows = View::of(rows.data(), DType::kInt32, {1})},
                               {.weights = w}, engine::default_parallel()),
               InvalidArgument);
  EXPECT_THROW(
      engine::weights(built.problem, {.top_k = -1}, {.weights = w}, engine::default_parallel()),
      InvalidArgument);
  EXPECT_THROW(
      engine::weights(built.problem, {.top_k = 3}, {.weights = w}, engine::default_parallel()),
      InvalidArgument);
}

}  // namespace
}  // namespace fovea
