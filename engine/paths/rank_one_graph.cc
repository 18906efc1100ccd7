#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/dispatch.h"
#include "engine/runtime/parallel.h"
#include "engine/graph/graph.h"
#include "engine/paths/rank_one_graph.h"
#include "engine/tiles/random.h"
#include "engine/graph/transposed.h"
#include "engine/runtime/scratch.h"

namespace fovea::engine {
namespace {

constexpr size_t kChunk = 256;
// Results larger than this would not stay in the caches, so they are stored past them.
constexpr size_t kStreamBytes = size_t{8} << 20;

// (n, H, *) with no gaps.
bool dense(const View& view, int rank) {
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    if (view.size[d] > 1 && view.stride[d] != stride) return false;
    stride *= view.size[d];
  }
  return true;
}

template <class T = float>
T* data_of(const View& view) {
  return static_cast<T*>(view.data);
}

RankOneGraph make_graph(const Problem& problem, const Geometry& g, const GraphView& view,
                        const Result& result, Vector<uint64_t>* head_seeds) {
  RankOneGraph graph;
  graph.heads = g.heads;
  graph.width = g.value_width;
  graph.negative_slope = static_cast<float>(std::get<RankOne>(problem.score.kind).negative_slope);
  graph.rows = view.rows;
  graph.keys = view.keys;
  graph.edges = view.edges;
  graph.row_offsets = view.row_offsets;
  graph.columns = view.columns;
  graph.query = data_of(problem.query);
  graph.key = data_of(problem.key);
  graph.value = data_of(problem.value);
  graph.output = data_of(result.output);
  graph.statistics = data_of(result.statistics);
  graph.lse = data_of(result.lse);
  graph.dropout = make_dropout(problem.dropout_p, problem.seed);
  graph.query_offset = g.query_offset[0];
  if (graph.dropout) {
    for (size_t h = 0; h < g.heads; ++h) head_seeds->push_back(random_head(problem.seed, 0, h));
    graph.head_seeds = head_seeds->data();
  }
  return graph;
}

template <class Body>
void for_chunks(const Parallel& parallel, size_t n, const Body& body) {
  run_tickets(parallel, (n + kChunk - 1) / kChunk, [&](size_t worker, size_t ticket) {
    body(worker, ticket * kChunk, std::min(n, (ticket + 1) * kChunk));
  });
}

// Whether the kernels can write, or read, the arrays of a request as they lie.
bool arrays_fit(const Request& request) {
  const auto fits = [](const View& view, int rank) {
    return !view || (view.dtype == DType::kFloat32 && dense(view, rank));
  };
  const Result* result = request.result;
  if (result && !(result->output && fits(result->output, 3) && fits(result->lse, 2) &&
                  fits(result->statistics, 3)))
    return false;
  const Gradients* gradients = request.gradients;
  return !gradients ||
         (fits(gradients->output, 3) && fits(gradients->lse, 2) && fits(gradients->query, 3) &&
          fits(gradients->key, 3) && fits(gradients->value, 3));
}

Reason rank_one_declines(const Request& request) {
  const Problem& problem = request.problem;
  const Geometry& g = request.geometry;
  if (!g.graph) return {"the structure is not a graph"};
  if (!std::holds_alternative<RankOne>(problem.score.kind) || !problem.score.modifiers.empty())
    return {"the score is not plain rank_one"};
  const auto* softmax = std::get_if<Softmax>(&problem.normaliser);
  if (!softmax || softmax->sink) return {"the normaliser is not softmax without a sink"};
  if (problem.structure.all_of.size() > 1 || problem.key_lengths)
    return {"other structures or lengths drop edges"};
  if (g.storage != DType::kFloat32) return {"the type is not float32"};
  if (g.group != 1) return {"key heads are shared"};
  if (g.heads == 0 || g.heads > kRankOneHeads)
    return {"%zu heads, 1 to %zu", g.heads, kRankOneHeads};
  if (g.value_width == 0 || !rank_one_kernels(g.value_width))
    return {"the value's width is not a multiple of 4"};
  if (!dense(problem.query, 3) || !dense(problem.key, 3) || !dense(problem.value, 3))
    return {"tensors have gaps"};
  if (!arrays_fit(request)) return {"results or gradients have gaps"};
  return {};
}

int64_t rank_one_forward(const Problem& problem, const Geometry& g, const Result& result,
                         const Parallel& parallel) {
  const GraphView view(g);
  Vector<uint64_t> head_seeds;
  RankOneGraph graph = make_graph(problem, g, view, result, &head_seeds);
  const size_t row_bytes = graph.heads * graph.width * sizeof(float);
  graph.stream = graph.rows * row_bytes > kStreamBytes && row_bytes % 64 == 0 &&
                 reinterpret_cast<uintptr_t>(graph.output) % 64 == 0;
  const auto& kernels = *rank_one_kernels(graph.width);
  const size_t tickets = (graph.rows + kChunk - 1) / kChunk;
  Vector<ScratchArray<float>> weights(slots(parallel, tickets));
  for (auto& w : weights) w = ScratchArray<float>((view.max_degree + 2) * graph.padded_heads());
  std::atomic<int64_t> empty{0};
  Report report;
  for_chunks(parallel, graph.rows, [&](size_t worker, size_t from, size_t to) {
    int64_t none = 0;
    size_t spoiled = SIZE_MAX;
    kernels.forward(graph, from, to, weights[worker].data(), &none, &spoiled);
    empty += none;
    if (spoiled != SIZE_MAX) report.spoiled(spoiled);
  });
  report.check(problem, g);
  return empty;
}

void rank_one_backward(const Problem& problem, const Geometry& g, const Result& saved,
                       const Gradients& gradients, const Parallel& parallel) {
  const GraphView view(g);
  const auto kept = transposed_of(view);
  const Transposed& transposed = *kept;
  Vector<uint64_t> head_seeds;
  RankOneGraph graph = make_graph(problem, g, view, saved, &head_seeds);
  const size_t padded = graph.padded_heads(), values = graph.keys * graph.heads * graph.width;
  const ScratchArray<float> record(graph.rows * graph.record_parts() * padded),
      d_edge(graph.edges * padded);
  // The kernel writes all three; those that the caller does not want go to scratch memory.
  const ScratchArray<float> d_value(gradients.value ? 0 : values),
      d_key(gradients.key ? 0 : graph.keys * graph.heads);
  graph.d_output = data_of(gradients.output);
  graph.d_lse = data_of(gradients.lse);
  graph.record = record.data();
  graph.d_edge = d_edge.data();
  graph.key_offsets = transposed.offsets.data();
  graph.key_rows = transposed.rows.data();
  graph.place = transposed.place.data();
  graph.d_query = data_of(gradients.query);
  graph.d_key = gradients.key ? data_of(gradients.key) : d_key.data();
  graph.d_value = gradients.value ? data_of(gradients.value) : d_value.data();
  const auto& kernels = *rank_one_kernels(graph.width);
  for_chunks(parallel, graph.rows,
             [&](size_t, size_t from, size_t to) { kernels.records(graph, from, to); });
  for_chunks(parallel, graph.keys,
             [&](size_t, size_t from, size_t to) { kernels.keys(graph, from, to); });
  if (graph.d_query)
    for_chunks(parallel, graph.rows,
               [&](size_t, size_t from, size_t to) { kernels.queries(graph, from, to); });
}

}  // namespace

constinit const Path kRankOneGraphPath{
    .id = "rank_one_graph",
    .summary = "all heads of an edge in one sweep",
    .declines = rank_one_declines,
    .f32 = {.forward = rank_one_forward, .backward = rank_one_backward}};

}  // namespace fovea::engine
