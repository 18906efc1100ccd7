// Keys and values in pages: every score, normaliser, modifier and structure against the reference,
// where the pages are read in place and where they are copied.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "cases/cases.h"
#include "tests/engine/comparison.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Built;
using cases::Case;
using cases::Storage;
using engine::DType;
using engine::View;

constexpr int64_t kSpare = 2;  // pages of the pool that no item has, full of NaN

struct Pages {
  int64_t size = 4;
  bool strided_table = false;
};

// A table of shuffled pages; -1 where an item has none.
View table_of(Storage& storage, const std::vector<int64_t>& lengths, int64_t most,
              const Pages& pages) {
  const auto items = static_cast<int64_t>(lengths.size());
  std::vector<int64_t> order(static_cast<size_t>(items * most + kSpare));
  std::iota(order.begin(), order.end(), 0);
  for (size_t n = order.size(); n > 1; --n)
    std::swap(order[n - 1], order[static_cast<size_t>(storage.integer(0, int64_t(n) - 1))]);
  View table = storage.zeros(DType::kInt32, {items, most * (pages.strided_table ? 2 : 1)});
  table.size[1] = most;
  if (pages.strided_table) table.stride[1] = 2;
  for (int64_t b = 0, next = 0; b < items; ++b) {
    for (int64_t p = 0; p < most; ++p, ++next) {
      const bool used = p * pages.size < lengths[static_cast<size_t>(b)];
      Storage::set(table, b * table.stride[0] + p * table.stride[1],
                   used ? static_cast<double>(order[static_cast<size_t>(next)]) : -1);
    }
  }
  return table;
}

// Rows [B, H, S, E] as a pool.
View pool_of(Storage& storage, const View& rows, const View& table,
             const std::vector<int64_t>& lengths, const Pages& pages) {
  const View pool = storage.zeros(
      rows.dtype, {table.size[0] * table.size[1] + kSpare, pages.size, rows.size[1], rows.size[3]});
  Storage::each(pool, [&](int64_t at) { Storage::set(pool, at, std::nan("")); });
  for (int64_t b = 0; b < rows.size[0]; ++b) {
    for (int64_t j = 0; j < lengths[static_cast<size_t>(b)]; ++j) {
      const auto page = static_cast<int64_t>(
          Storage::get(table, b * table.stride[0] + j / pages.size * table.stride[1]));
      for (int64_t h = 0; h < rows.size[1]; ++h) {
        for (int64_t e = 0; e < rows.size[3]; ++e) {
          const double x =
              Storage::get(rows, b * rows.stride[0] + h * rows.stride[1] + j * rows.stride[2] + e);
          Storage::set(
              pool,
              page * pool.stride[0] + j % pages.size * pool.stride[1] + h * pool.stride[2] + e, x);
        }
      }
    }
  }
  return pool;
}

// The same problem with its keys and values in pages; the keys must fill whole pages.
void put_in_pages(Built& built, const Pages& pages) {
  engine::Problem& p = built.problem;
  const int64_t batch = p.key.size[0], keys = p.key.size[2];
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < batch; ++b)
    lengths.push_back(p.key_lengths ? static_cast<int64_t>(Storage::get(p.key_lengths, b)) : keys);
  const View table = table_of(built.storage, lengths, keys / pages.size, pages);
  p.key = pool_of(built.storage, p.key, table, lengths, pages);
  p.value = pool_of(built.storage, p.value, table, lengths, pages);
  p.key_lengths = {};
  p.structure =
      p.structure &
      engine::Paged{table, built.storage.values(DType::kInt32, {lengths.begin(), lengths.end()})};
  built.gradients.key = built.storage.zeros_like(p.key, p.key.dtype);
  built.gradients.value = built.storage.zeros_like(p.value, p.value.dtype);
}

Case with_whole_pages(Case c) {
  c.shape.keys = 12;
  c.shape.queries = 6;
  c.key_lengths = true;
  return c;
}

void expect_agreement_in_pages(const Case& c, const Pages& pages = {}) {
  SCOPED_TRACE(c.name() + ", pages of " + std::to_string(pages.size));
  Built built = cases::build(c);
  put_in_pages(built, pages);
  expect_agreement(built, serial());
}

TEST(Pages, AgreeForEveryScoreNormaliserAndModifier) {
  for (const auto& score : cases::scores()) {
    const bool silverman = score.name.find("silverman") != std::string::npos;
    expect_agreement_in_pages(with_whole_pages(
        {.score = score.name, .normaliser = silverman ? "kernel_ratio" : "softmax"}));
  }
  for (const auto& normaliser : cases::normalisers())
    expect_agreement_in_pages(with_whole_pages({.normaliser = normaliser.name}));
  for (const auto& modifier : cases::modifiers())
    expect_agreement_in_pages(with_whole_pages({.modifiers = {modifier.name}}));
}

TEST(Pages, AgreeForEveryStructureOfEveryPair) {
  for (const auto& structure : cases::structures()) {
    if (structure.kind == "ragged" || structure.kind == "graph") continue;
    for (const char* normaliser : {"softmax", "sparsemax"})
      expect_agreement_in_pages(
          with_whole_pages({.normaliser = normaliser, .structure = {structure.name}}));
  }
}

TEST(Pages, AgreeForEverySizeTypeAndTable) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16}) {
    for (const int64_t size : {1, 3, 4, 12}) {
      Case c = with_whole_pages({.structure = {"causal_bottom_right"}, .dtype = dtype});
      c.shape.heads = 4;
      expect_agreement_in_pages(c, {.size = size, .strided_table = size == 3});
    }
  }
}

// Decoding reads pages where they lie; parts of 256 keys begin and end within pages.
TEST(Pages, DecodingReadsThemInPlace) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16}) {
    for (const int64_t size : {16, 21, 64}) {
      for (const char* structure : {"dense", "window", "causal_bottom_right", "streaming"}) {
        const Case c{.structure = {structure},
                     .shape = {.batch = 2,
                               .heads = 6,
                               .key_heads = 2,
                               .queries = 2,
                               .keys = 21 * 64,
                               .width = 21,
                               .value_width = 37},
                     .dtype = dtype,
                     .key_lengths = true};
        Built rows = cases::build(c), paged = cases::build(c);
        put_in_pages(paged, {.size = size, .strided_table = size == 64});
        ASSERT_EQ(path_of(rows.problem, engine::Task::kForward), "decode");
        ASSERT_EQ(path_of(paged.problem, engine::Task::kForward), "decode");
        EXPECT_EQ(run_forward(paged).output, run_forward(rows).output)
            << c.name() << ", pages of " << size;
      }
    }
  }
}

// A prefix that two sequences have in common is stored once; its gradient is both of theirs.
TEST(Pages, ItemsMayShareThem) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    Built built = cases::build(with_whole_pages({.structure = {"causal"}, .dtype = dtype}));
    put_in_pages(built, {});
    const auto& paged = std::get<engine::Paged>(built.problem.structure.all_of.back());
    Storage::set(paged.lengths, 0, 12);
    Storage::set(paged.lengths, 1, 9);
    for (int64_t p = 0; p < 3; ++p) Storage::set(paged.table, p, static_cast<double>(p));
    for (int64_t p = 0; p < 3; ++p)
      Storage::set(paged.table, 3 + p, static_cast<double>(p == 0 ? 0 : 2 + p));
    for (const View& pool : {built.problem.key, built.problem.value})
      Storage::each(pool,
                    [&](int64_t at) { Storage::set(pool, at, built.storage.uniform(-1, 1)); });
    expect_agreement(built, serial());
  }
}

TEST(Pages, ExplainDispatchSaysWhereTheyAreCopied) {
  Built decoding = cases::build({.shape = {.queries = 1, .keys = 512}});
  put_in_pages(decoding, {.size = 16});
  const std::string in_place = engine::explain_dispatch(decoding.problem);
  EXPECT_NE(in_place.find("decode: taken"), std::string::npos) << in_place;
  EXPECT_LT(in_place.find("backward"), in_place.find("pages: keys and values are copied"));
  Built many = cases::build({.shape = {.queries = 64, .keys = 512}});
  put_in_pages(many, {.size = 16});
  const std::string copied = engine::explain_dispatch(many.problem);
  EXPECT_LT(copied.find("pages: keys and values are copied"), copied.find("tiles: taken"));
}

struct Wrong {
  const char* message;
  void (*change)(engine::Problem& problem, engine::Paged& paged);
};

TEST(Pages, WhatIsWrongIsNamed) {
  const Wrong all[] = {
      {"structure.table[1][2]: 8, expected between 0 and 7 (the pages)",
       [](engine::Problem&, engine::Paged& s) { Storage::set(s.table, 5, 8); }},
      {"structure.table[0][0]: -1, expected between 0 and 7 (the pages)",
       [](engine::Problem&, engine::Paged& s) { Storage::set(s.table, 0, -1); }},
      {"structure.lengths[1]: 13, expected between 0 and 12",
       [](engine::Problem&, engine::Paged& s) { Storage::set(s.lengths, 1, 13); }},
      {"structure.lengths: size 1 in dimension 0, expected 2 (the query's batch)",
       [](engine::Problem&, engine::Paged& s) { s.lengths.size[0] = 1; }},
      {"structure.table: missing", [](engine::Problem&, engine::Paged& s) { s.table = {}; }},
      {"structure.table: rank 1, expected 2",
       [](engine::Problem&, engine::Paged& s) { s.table = s.lengths; }},
      {"value: size 7 in dimension 0, expected 8 (the key's pages)",
       [](engine::Problem& p, engine::Paged&) { p.value.size[0] = 7; }},
      {"key_lengths with paged",
       [](engine::Problem& p, engine::Paged& s) { p.key_lengths = s.lengths; }},
      {"structure: two tables of pages, expected one",
       [](engine::Problem& p, engine::Paged& s) { p.structure = p.structure & s; }},
  };
  for (const Wrong& wrong : all) {
    Built built = cases::build({.shape = {.queries = 6, .keys = 12}});
    put_in_pages(built, {});
    wrong.change(built.problem, std::get<engine::Paged>(built.problem.structure.all_of.back()));
    try {
      run_forward(built);
      ADD_FAILURE() << wrong.message;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(wrong.message), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace fovea
