#include "engine/call/problem.h"

#include <algorithm>
#include <cmath>

#include "engine/call/check.h"
#include "engine/call/facts.h"
#include "engine/call/meaning.h"
#include "engine/stage.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

Rows rows_of(const View& view, bool packed, size_t start, size_t count, size_t batch, size_t head) {
  const auto b = static_cast<int64_t>(packed ? start : batch), h = static_cast<int64_t>(head);
  const int64_t offset = b * view.stride[0] + h * view.stride[1];
  return {static_cast<char*>(view.data) + offset * static_cast<int64_t>(size_of(view.dtype)),
          packed ? view.stride[0] : view.stride[2], count};
}

// Offsets of a packed batch: [0, ..., total], never going down.
void read_offsets(const View& view, const char* name, int64_t total, ItemNumbers<size_t>* start,
                  ItemNumbers<size_t>* count) {
  check_rank(view, name, 1);
  check_dtype(view, name, DType::kInt32);
  const int64_t n = view.size[0] - 1;
  FOVEA_CHECK(n >= 0, std::string(name) + ": size 0, expected at least 1 (batch + 1 offsets)");
  int64_t last = 0;
  for (int64_t b = 0; b <= n; ++b) {
    const int64_t at = element<int32_t>(view, b);
    const auto place = [&] { return std::string(name) + "[" + std::to_string(b) + "]: "; };
    FOVEA_CHECK(b > 0 || at == 0, place() + std::to_string(at) + ", expected 0");
    FOVEA_CHECK(at >= last, place() + std::to_string(at) + ", expected at least " +
                                std::to_string(last) + " (the one before)");
    FOVEA_CHECK(at <= total, place() + std::to_string(at) + ", expected at most " +
                                 std::to_string(total) + " (the rows there are)");
    if (b < n) start->push_back(static_cast<size_t>(at));
    if (b > 0) count->push_back(static_cast<size_t>(at - last));
    last = at;
  }
  FOVEA_CHECK(last == total, std::string(name) + ": ends at " + std::to_string(last) +
                                 ", expected " + std::to_string(total) + " (the rows there are)");
}

void check_graph(const Graph& graph, int64_t queries, int64_t keys) {
  check_rank(graph.row_offsets, "structure.row_offsets", 1);
  check_dtype(graph.row_offsets, "structure.row_offsets", DType::kInt32);
  check_rank(graph.columns, "structure.columns", 1);
  check_dtype(graph.columns, "structure.columns", DType::kInt32);
  check_size(graph.row_offsets, "structure.row_offsets", 0, queries + 1,
             "one more than the queries");
  if (!graph.row_offsets.data) return;  // looked at before (torch/engine_call.cc)
  const int64_t edges = graph.columns.size[0];
  int64_t last = 0;
  for (int64_t i = 0; i <= queries; ++i) {
    const int64_t at = element<int32_t>(graph.row_offsets, i);
    const auto place = [&] { return "structure.row_offsets[" + std::to_string(i) + "]: "; };
    FOVEA_CHECK(i > 0 || at == 0, place() + std::to_string(at) + ", expected 0");
    FOVEA_CHECK(at >= last && at <= edges, place() + std::to_string(at) + ", expected between " +
                                               std::to_string(last) + " and " +
                                               std::to_string(edges));
    last = at;
  }
  FOVEA_CHECK(last == edges, "structure.row_offsets: ends at " + std::to_string(last) +
                                 ", expected " + std::to_string(edges) +
                                 " (the columns there are)");
  for (int64_t e = 0; e < edges; ++e) {
    const int64_t column = element<int32_t>(graph.columns, e);
    FOVEA_CHECK(column >= 0 && column < keys,
                "structure.columns[" + std::to_string(e) + "]: " + std::to_string(column) +
                    ", expected between 0 and " + std::to_string(keys - 1) + " (the keys)");
  }
}

void read_lengths(const View& lengths, Geometry* g) {
  g->key_limit = g->key_count;
  if (!lengths) return;
  check_rank(lengths, "key_lengths", 1);
  check_dtype(lengths, "key_lengths", DType::kInt32);
  check_size(lengths, "key_lengths", 0, static_cast<int64_t>(g->batches), "the batch");
  for (size_t b = 0; b < g->batches; ++b) {
    const int64_t n = element<int32_t>(lengths, static_cast<int64_t>(b));
    FOVEA_CHECK(n >= 0 && n <= static_cast<int64_t>(g->key_count[b]),
                "key_lengths[" + std::to_string(b) + "]: " + std::to_string(n) +
                    ", expected between 0 and " + std::to_string(g->key_count[b]) + " (the keys)");
    g->key_limit.set(b, static_cast<size_t>(n));
  }
}

// Items' numbers of keys, and that their pages are there.
void read_pages(int64_t pages, Geometry* g) {
  const View &table = g->paged->table, &lengths = g->paged->lengths;
  for (size_t b = 0; b < g->batches; ++b) {
    const auto item = static_cast<int64_t>(b);
    const int64_t n = element<int32_t>(lengths, item);
    FOVEA_CHECK(n >= 0 && n <= static_cast<int64_t>(g->max_keys),
                "structure.lengths[" + std::to_string(b) + "]: " + std::to_string(n) +
                    ", expected between 0 and " + std::to_string(g->max_keys) +
                    " (the table's width times the page's size)");
    g->key_limit.set(b, static_cast<size_t>(n));
    for (int64_t p = 0; p * static_cast<int64_t>(g->page_size) < n; ++p) {
      const int64_t page = element<int32_t>(table, item, p);
      FOVEA_CHECK(page >= 0 && page < pages, "structure.table[" + std::to_string(b) + "][" +
                                                 std::to_string(p) + "]: " + std::to_string(page) +
                                                 ", expected between 0 and " +
                                                 std::to_string(pages - 1) + " (the pages)");
    }
  }
}

// The shapes of a table and its lengths for a batch.
void check_pages(const Paged& paged, int64_t batches) {
  for (const auto& [view, name] :
       {std::pair{&paged.table, "structure.table"}, {&paged.lengths, "structure.lengths"}})
    FOVEA_CHECK(static_cast<bool>(*view), std::string(name) + ": missing");
  check_rank(paged.table, "structure.table", 2);
  check_dtype(paged.table, "structure.table", DType::kInt32);
  check_size(paged.table, "structure.table", 0, batches, "the query's batch");
  check_rank(paged.lengths, "structure.lengths", 1);
  check_dtype(paged.lengths, "structure.lengths", DType::kInt32);
  check_size(paged.lengths, "structure.lengths", 0, batches, "the query's batch");
}

void read_query_offset(const Problem& problem, Geometry* g) {
  const View& each = problem.query_offset.each;
  const int64_t all = problem.query_offset.number;
  FOVEA_CHECK(all >= INT32_MIN && all <= INT32_MAX,
              "query_offset: " + std::to_string(all) + ", expected a number of 32 bits");
  g->query_offset.assign(g->batches, all);
  if (each) {
    check_rank(each, "query_offset", 1);
    check_dtype(each, "query_offset", DType::kInt32);
    if (each.size[0] != 1)
      check_size(each, "query_offset", 0, static_cast<int64_t>(g->batches), "the batch");
    for (size_t b = 0; b < g->batches; ++b)
      g->query_offset.set(b,
                          element<int32_t>(each, each.size[0] == 1 ? 0 : static_cast<int64_t>(b)));
  }
  // Bottom right is an offset of its own; another beside it has been refused.
  if (!has_bottom_right(problem.structure)) return;
  const auto shift = [&](size_t b) {
    return static_cast<int64_t>(g->key_limit[b]) - static_cast<int64_t>(g->query_count[b]);
  };
  if (g->key_limit.is_one() && g->query_count.is_one())
    return g->query_offset.assign(g->batches, shift(0));
  for (size_t b = 0; b < g->batches; ++b) g->query_offset.set(b, shift(b));
}

}  // namespace

Rows Geometry::query_rows(const View& view, size_t batch, size_t head) const {
  return rows_of(view, packed, query_start[batch], query_count[batch], batch, head);
}
Rows Geometry::key_rows(const View& view, size_t batch, size_t head) const {
  return rows_of(view, packed, key_start[batch], key_count[batch], batch, head);
}

size_t Geometry::page(size_t batch, size_t place) const {
  return static_cast<size_t>(
      element<int32_t>(paged->table, static_cast<int64_t>(batch), static_cast<int64_t>(place)));
}

Geometry resolve(const Problem& problem) {
  Geometry g;
  const Ragged* ragged = nullptr;
  for (const auto& part : problem.structure.all_of) {
    if (const auto* r = std::get_if<Ragged>(&part)) {
      FOVEA_CHECK(!ragged, "structure: two ragged batches, expected one");
      ragged = r;
    }
    if (const auto* graph = std::get_if<Graph>(&part)) {
      FOVEA_CHECK(!g.graph, "structure: two graphs, expected one");
      g.graph = graph;
    }
    if (const auto* paged = std::get_if<Paged>(&part)) {
      FOVEA_CHECK(!g.paged, "structure: two tables of pages, expected one");
      g.paged = paged;
    }
  }
  check_parts(problem.structure);
  check_meaning(problem);
  g.packed = ragged || g.graph;
  const int rank = g.packed ? 3 : 4;
  g.storage = problem.query.dtype;
  FOVEA_CHECK(g.storage == DType::kFloat32 || g.storage == DType::kFloat64 ||
                  g.storage == DType::kBFloat16 || g.storage == DType::kFloat16,
              "query: " + name_of(g.storage) + ", expected float32, float64, bfloat16 or float16");
  for (const auto& [view, name] :
       {std::pair{&problem.query, "query"}, {&problem.key, "key"}, {&problem.value, "value"}}) {
    FOVEA_CHECK(
        static_cast<bool>(*view) ||
            std::any_of(view->size.begin(), view->size.begin() + std::clamp(view->rank, 0, 4),
                        [](int64_t n) { return n == 0; }),
        std::string(name) + ": missing");
    FOVEA_CHECK(view->rank == rank,
                std::string(name) + ": rank " + std::to_string(view->rank) +
                    (g.packed ? ", expected 3, (total, heads, width): the structure packs sequences"
                              : ", expected 4, [batch, heads, length, width]; rank 3 is for packed "
                                "sequences, with the structure ragged or graph"));
    check_rows(*view, name);
    FOVEA_CHECK(view->dtype == problem.query.dtype,
                std::string(name) + ": " + name_of(view->dtype) + ", expected " +
                    name_of(problem.query.dtype) + " (the query's)");
  }
  const View &q = problem.query, &k = problem.key, &v = problem.value;
  // Pools are [pages, page_size, heads, width].
  const int head = g.paged ? 2 : 1, width = rank - 1, row = g.packed ? 0 : g.paged ? 1 : 2;
  g.heads = static_cast<size_t>(q.size[1]);
  g.key_heads = static_cast<size_t>(k.size[head]);
  check_size(v, "value", head, k.size[head], "the key's heads");
  check_size(v, "value", row, k.size[row], "the key's rows");
  if (g.paged) {
    check_pages(*g.paged, q.size[0]);
    check_size(v, "value", 0, k.size[0], "the key's pages");
    g.page_size = static_cast<size_t>(k.size[row]);
    FOVEA_CHECK(g.page_size > 0,
                "key: pages of no rows, expected [pages, page_size, heads, width]");
  } else if (!g.packed) {
    check_size(k, "key", 0, q.size[0], "the query's batch");
    check_size(v, "value", 0, q.size[0], "the query's batch");
  }
  FOVEA_CHECK(g.key_heads == 0 ? g.heads == 0 : g.heads % g.key_heads == 0,
              "key: " + std::to_string(g.key_heads) + " heads, expected a divisor of " +
                  std::to_string(g.heads) + " (the query's)");
  g.group = g.key_heads == 0 ? 1 : g.heads / g.key_heads;
  g.query_width = static_cast<size_t>(q.size[width]);
  g.key_width = static_cast<size_t>(k.size[width]);
  g.value_width = static_cast<size_t>(v.size[width]);
  if (ragged) {
    read_offsets(ragged->query_offsets, "structure.query_offsets", q.size[0], &g.query_start,
                 &g.query_count);
    read_offsets(ragged->key_offsets, "structure.key_offsets", k.size[0], &g.key_start,
                 &g.key_count);
    FOVEA_CHECK(g.query_start.size() == g.key_start.size(),
                "structure.key_offsets: batch of " + std::to_string(g.key_start.size()) +
                    ", expected " + std::to_string(g.query_start.size()) + " (query_offsets')");
  } else {
    const size_t batches = g.graph ? 1 : static_cast<size_t>(q.size[0]);
    g.query_start.assign(batches, 0);
    g.key_start.assign(batches, 0);
    g.query_count.assign(batches, static_cast<size_t>(q.size[g.packed ? 0 : 2]));
    g.key_count.assign(batches, g.paged ? static_cast<size_t>(g.paged->table.size[1]) * g.page_size
                                        : static_cast<size_t>(k.size[row]));
    if (g.graph) check_graph(*g.graph, q.size[0], k.size[0]);
  }
  g.batches = g.query_start.size();
  g.max_queries = g.query_count.largest();
  g.max_keys = g.key_count.largest();
  read_lengths(problem.key_lengths, &g);
  if (g.paged) read_pages(k.size[0], &g);
  read_query_offset(problem, &g);
  FOVEA_CHECK(
      problem.dropout_p >= 0 && problem.dropout_p < 1,
      "dropout_p: " + std::to_string(problem.dropout_p) + ", expected at least 0 and below 1");
  check_score(problem, g);
  check_normaliser(problem, g);
  check_structure(problem, g);
  return g;
}

Face face_of(const Problem& problem) {
  const auto* kernel = std::get_if<Kernel>(&problem.score.kind);
  if (std::holds_alternative<Unnormalised>(problem.normaliser)) return Face::kValue;
  if (!std::holds_alternative<KernelRatio>(problem.normaliser)) return Face::kLog;
  // A ratio of positive kernels is the softmax of their logarithms, which never underflows to
  // 0 / 0. A modifier acts on the value of the kernel, so it keeps the value.
  using choice::KernelName;
  const bool positive =
      kernel && (kernel->name == KernelName::kGaussian || kernel->name == KernelName::kLaplace ||
                 kernel->name == KernelName::kLogistic || kernel->name == KernelName::kSigmoid ||
                 kernel->name == KernelName::kCauchy);
  return positive && problem.score.modifiers.empty() ? Face::kLog : Face::kValue;
}

}  // namespace fovea::engine
