// Few queries over few keys. What the tiles prepare for many rows (packed keys, stages, scratch)
// costs more than the work itself here; so does waking a thread, until there are many heads.
#include <algorithm>
#include <atomic>

#include "engine/call/facts.h"
#include "engine/call/view.h"
#include "engine/dispatch.h"
#include "engine/paths/short_loops.h"
#include "engine/runtime/parallel.h"
#include "engine/tiles/pass.h"

namespace fovea::engine {
namespace {

// Pairs of a head up to which rows one by one are faster than tiles: those are as fast from 49
// queries on when dense, and from 65 on when causal (bench/short_calls, on a core that splits 512
// bits in two).
constexpr size_t kMostQueries = 64, kMostPairs = 2400;

template <class T>
typename ShortHeads<T>::Rows rows_of(const Rows& rows, const View& view) {
  return {rows.data, view.stride[1], rows.stride};
}

template <class T>
class Short {
 public:
  Short(const Problem& problem, const Geometry& g, const Result& result)
      : problem_(problem), g_(g), result_(result), structure_(make_structure(problem, g)) {
    const auto& dot = std::get<Dot>(problem.score.kind);
    scale_ = static_cast<T>(dot_scale(dot, static_cast<int64_t>(g.query_width)));
  }

  int64_t run(const Parallel& parallel) {
    if (parallel.workers == 1) {
      for (size_t b = 0; b < g_.batches; ++b) item(b, 0, g_.heads);
    } else {
      share(parallel);
    }
    report_.check(problem_, g_);
    return report_.empty();
  }

 private:
  // Several items to a ticket, or heads of one: as many as are worth it.
  void share(const Parallel& parallel) {
    const size_t work = std::max<size_t>(
        1, g_.max_queries * g_.max_keys * (g_.query_width + g_.value_width));  // of a head
    const size_t heads = std::clamp<size_t>(kGrain / work, 1, g_.heads),
                 parts = (g_.heads + heads - 1) / heads,
                 items = std::clamp<size_t>(kGrain / (work * g_.heads), 1, g_.batches),
                 blocks = (g_.batches + items - 1) / items;
    run_tickets(parallel, blocks * parts, [&](size_t, size_t ticket) {
      const size_t block = ticket / parts, from = ticket % parts * heads;
      for (size_t b = block * items; b < std::min(g_.batches, (block + 1) * items); ++b)
        item(b, from, std::min(g_.heads, from + heads));
    });
  }

  void item(size_t batch, size_t from, size_t to) {
    const size_t rows = g_.query_count[batch];
    if (rows == 0) return;
    uint32_t begin[kMostQueries], end[kMostQueries];
    for (size_t i = 0; i < rows; ++i) {
      size_t b, e;
      structure_->range(batch, 0, i, &b, &e);
      begin[i] = static_cast<uint32_t>(std::min(b, e));
      end[i] = static_cast<uint32_t>(e);
    }
    const Rows out = g_.query_rows(result_.output, batch, 0);
    ShortHeads<T> x{.query = rows_of<T>(g_.query_rows(problem_.query, batch, 0), problem_.query),
                    .key = rows_of<T>(g_.key_rows(problem_.key, batch, 0), problem_.key),
                    .value = rows_of<T>(g_.key_rows(problem_.value, batch, 0), problem_.value),
                    .output = out.data,
                    .output_head = result_.output.stride[1],
                    .output_row = out.stride,
                    .group = g_.group,
                    .width = g_.query_width,
                    .value_width = g_.value_width,
                    .scale = scale_,
                    .begin = begin,
                    .end = end,
                    .rows = rows};
    if (result_.lse) {
      const Rows lse = g_.query_rows(result_.lse, batch, 0);
      x.lse = reinterpret_cast<T*>(lse.data);
      x.lse_head = result_.lse.stride[1];
      x.lse_row = lse.stride;
    }
    const ShortOutcome outcome = short_heads<T>(g_.storage, x, from, to);
    if (outcome.empty) report_.empty(outcome.empty);
    if (outcome.spoiled != SIZE_MAX) {
      report_.spoiled((batch * g_.heads + outcome.spoiled / rows) * g_.max_queries +
                      outcome.spoiled % rows);
    }
  }

  const Problem& problem_;
  const Geometry& g_;
  const Result& result_;
  const std::unique_ptr<StructureStage> structure_;
  T scale_;
  Report report_;
};

// One range of keys for each query, the same for every head.
bool is_range(const Structure& structure) {
  return std::all_of(structure.all_of.begin(), structure.all_of.end(), [](const auto& part) {
    return std::holds_alternative<Dense>(part) || std::holds_alternative<Causal>(part) ||
           std::holds_alternative<Window>(part) || std::holds_alternative<Prefix>(part) ||
           std::holds_alternative<Ragged>(part);
  });
}

// Of a head, or a few more.
size_t pairs_of(const Problem& problem, const Geometry& g) {
  const auto& parts = problem.structure.all_of;
  const bool causal = std::any_of(parts.begin(), parts.end(), [](const auto& part) {
    return std::holds_alternative<Causal>(part);
  });
  const size_t side = std::min(g.max_queries, g.max_keys);
  return g.max_queries * g.max_keys - (causal ? side * (side - 1) / 2 : 0);
}

Reason short_declines(const Request& request) {
  const Problem& problem = request.problem;
  const Geometry& g = request.geometry;
  if (g.max_queries > kMostQueries)
    return {"%zu queries, at most %zu", g.max_queries, kMostQueries};
  if (g.max_keys > kShortKeys) return {"%zu keys, at most %zu", g.max_keys, kShortKeys};
  if (const size_t pairs = pairs_of(problem, g); pairs > kMostPairs)
    return {"%zu pairs a head, at most %zu", pairs, kMostPairs};
  if (g.graph) return {"the structure is a graph"};
  if (!std::holds_alternative<Dot>(problem.score.kind) || !problem.score.modifiers.empty())
    return {"the score is not a plain dot"};
  const auto* softmax = std::get_if<Softmax>(&problem.normaliser);
  if (!softmax || softmax->sink) return {"the normaliser is not softmax without a sink"};
  if (problem.dropout_p > 0) return {"weights are dropped"};
  if (g.query_width > kShortWidth) return {"rows of %zu, at most %zu", g.query_width, kShortWidth};
  if (g.value_width == 0) return {"there are no values"};
  if (g.max_keys == 0) return {"there are no keys"};
  if (!is_range(problem.structure)) return {"the structure is not dense, causal, window or prefix"};
  return {};
}

template <class T>
int64_t short_forward(const Problem& problem, const Geometry& geometry, const Result& result,
                      const Parallel& parallel) {
  return Short<T>(problem, geometry, result).run(parallel);
}

}  // namespace

constinit const Path kShortPath{
    .id = "short",
    .summary = "few queries and keys, rows where they lie",
    .declines = short_declines,
    .f32 = {.forward = short_forward<float>},
    .f64 = {.forward = short_forward<double>},
    // Backward computes scores again, in the tiles' order of a product's
    // terms. From statistics of another order a weight comes out as
    // e^(what rounding makes of its score) times itself, which counts
    // where scores are in the thousands.
    .saves = false};

}  // namespace fovea::engine
