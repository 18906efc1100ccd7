// Few queries over few keys. The preparations of the path `tiles` (packed keys, stages, scratch) would
// cost more than the work itself; so would waking a thread, unless there are many heads.
#include <algorithm>
#include <atomic>

#include "engine/call/facts.h"
#include "engine/call/view.h"
#include "engine/dispatch.h"
#include "engine/paths/short_loops.h"
#include "engine/runtime/parallel.h"
#include "engine/structures/structures.h"
#include "engine/tiles/pass.h"

namespace fovea::engine {
namespace {

// Pairs of a head up to which rows one by one are faster than tiles: those are as fast from 49
// queries on when dense, and from 65 on when causal (bench/short_calls, on a core that splits 512
// bits in two).
constexpr size_t kMostQueries = kShortRows, kMostPairs = 2400;
// The same for backward, and so for a forward that saves for it: both make the scores the same way.
constexpr size_t kMostSaved = 800;

template <class T>
typename ShortHeads<T>::Rows rows_of(const Rows& rows, const View& view) {
  return {rows.data, view.stride[1], rows.stride};
}

// The keys each query of an item sees.
struct Ranges {
  uint32_t begin[kMostQueries], end[kMostQueries];
};

// Finds these keys. For a dense or a causal call it makes no stage: that would take as long as two
// rows.
class RangeFinder {
 public:
  RangeFinder(const Problem& problem, const Geometry& g)
      : g_(g),
        form_(form_of(problem.structure)),
        stage_(form_ == Form::kOther ? make_structure(problem, g) : nullptr) {}

  Ranges of(size_t batch) const {
    Ranges ranges;
    for (size_t i = 0; i < g_.query_count[batch]; ++i) {
      size_t begin = 0, end = g_.key_limit[batch];
      if (form_ == Form::kCausal) end = keys_up_to(g_, batch, i);
      if (form_ == Form::kOther) stage_->range(batch, 0, i, &begin, &end);
      ranges.begin[i] = static_cast<uint32_t>(std::min(begin, end));
      ranges.end[i] = static_cast<uint32_t>(end);
    }
    return ranges;
  }

 private:
  enum class Form { kDense, kCausal, kOther };
  static Form form_of(const Structure& structure) {
    if (structure.all_of.empty()) return Form::kDense;
    if (structure.all_of.size() > 1) return Form::kOther;
    const auto& only = structure.all_of.front();
    if (std::holds_alternative<Dense>(only)) return Form::kDense;
    return std::holds_alternative<Causal>(only) ? Form::kCausal : Form::kOther;
  }

  const Geometry& g_;
  const Form form_;
  const std::unique_ptr<StructureStage> stage_;  // of another form
};

// A place for one number, or kStatistics, a row.
template <class T>
void set_place(const Geometry& g, const View& view, size_t batch, T** data, int64_t* head,
               int64_t* row) {
  if (!view) return;
  const Rows rows = g.query_rows(view, batch, 0);
  *data = reinterpret_cast<T*>(rows.data);
  *head = view.stride[1];
  *row = rows.stride;
}

template <class T>
ShortHeads<T> heads_of(const Problem& p, const Geometry& g, const Result& result, size_t batch,
                       const Ranges& ranges) {
  const Rows out = g.query_rows(result.output, batch, 0);
  const auto& dot = std::get<Dot>(p.score.kind);
  ShortHeads<T> x{.query = rows_of<T>(g.query_rows(p.query, batch, 0), p.query),
                  .key = rows_of<T>(g.key_rows(p.key, batch, 0), p.key),
                  .value = rows_of<T>(g.key_rows(p.value, batch, 0), p.value),
                  .output = out.data,
                  .output_head = result.output.stride[1],
                  .output_row = out.stride,
                  .group = g.group,
                  .width = g.query_width,
                  .value_width = g.value_width,
                  .scale = static_cast<T>(dot_scale(dot, static_cast<int64_t>(g.query_width))),
                  .begin = ranges.begin,
                  .end = ranges.end,
                  .rows = g.query_count[batch]};
  set_place(g, result.lse, batch, &x.lse, &x.lse_head, &x.lse_row);
  set_place(g, result.statistics, batch, &x.statistics, &x.statistics_head, &x.statistics_row);
  return x;
}

template <class T>
class Short {
 public:
  Short(const Problem& problem, const Geometry& g, const Result& result)
      : problem_(problem), g_(g), result_(result), find_(problem, g) {}

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
  // A ticket is several items, or several heads of one: enough work for a thread.
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
    const Ranges ranges = find_.of(batch);
    const ShortOutcome outcome =
        short_heads<T>(g_.storage, heads_of<T>(problem_, g_, result_, batch, ranges), from, to);
    if (outcome.empty) report_.empty(outcome.empty);
    if (outcome.spoiled != SIZE_MAX) {
      report_.spoiled((batch * g_.heads + outcome.spoiled / rows) * g_.max_queries +
                      outcome.spoiled % rows);
    }
  }

  const Problem& problem_;
  const Geometry& g_;
  const Result& result_;
  const RangeFinder find_;
  Report report_;
};

// One range of keys for each query, the same for every head.
bool is_range(const Structure& structure) {
  return std::all_of(structure.all_of.begin(), structure.all_of.end(), [](const auto& part) {
    return std::holds_alternative<Dense>(part) || std::holds_alternative<Causal>(part) ||
           std::holds_alternative<Window>(part) || std::holds_alternative<Prefix>(part) ||
           std::holds_alternative<First>(part) || std::holds_alternative<Ragged>(part);
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
    return {"%zu pairs per head, at most %zu", pairs, kMostPairs};
  if (g.graph) return {"the structure is a graph"};
  if (!std::holds_alternative<Dot>(problem.score.kind) || !problem.score.modifiers.empty())
    return {"the score is not a plain dot"};
  const auto* softmax = std::get_if<Softmax>(&problem.normaliser);
  if (!softmax || softmax->sink) return {"the normaliser is not softmax without a sink"};
  if (problem.dropout_p > 0) return {"weights are dropped"};
  if (const size_t width = std::max(g.query_width, g.value_width); width > kShortWidth)
    return {"rows of %zu, at most %zu", width, kShortWidth};
  if (g.value_width == 0) return {"there are no values"};
  if (g.max_keys == 0) return {"there are no keys"};
  if (!is_range(problem.structure))
    return {"the structure is not dense, causal, window, prefix, first or ragged"};
  return {};
}

Reason short_declines_to_save(const Request& request) {
  const Geometry& g = request.geometry;
  if (const size_t pairs = pairs_of(request.problem, g); pairs > kMostSaved)
    return {"%zu pairs per head, at most %zu", pairs, kMostSaved};
  if (const size_t kept = g.max_queries * short_stride(g.max_keys); kept > kShortPairs)
    return {"%zu pairs with padding, at most %zu", kept, kShortPairs};
  return {};
}

template <class T>
int64_t short_forward(const Problem& problem, const Geometry& geometry, const Result& result,
                      const Parallel& parallel) {
  return Short<T>(problem, geometry, result).run(parallel);
}

template <class T>
void short_backward(const Problem& p, const Geometry& g, const Result& saved,
                    const Gradients& wanted, const Parallel& parallel) {
  const RangeFinder find(p, g);
  const size_t tickets = g.batches * g.key_heads, size = g.max_keys * (g.key_width + g.value_width);
  Vector<ScratchArray<T>> scratch(slots(parallel, tickets));
  for (auto& s : scratch) s = ScratchArray<T>(size);
  run_tickets(parallel, tickets, [&](size_t worker, size_t ticket) {
    const size_t batch = ticket / g.key_heads, key_head = ticket % g.key_heads;
    const size_t keys = g.key_count[batch];
    const Ranges ranges = find.of(batch);
    ShortGradients<T> x{
        .forward = heads_of<T>(p, g, saved, batch, ranges),
        .d_output = rows_of<T>(g.query_rows(wanted.output, batch, 0), wanted.output),
        .keys = keys,
        .d_key = scratch[worker].data(),
        .d_value = scratch[worker].data() + g.max_keys * g.key_width};
    T* d_lse = nullptr;
    set_place(g, wanted.lse, batch, &d_lse, &x.d_lse_head, &x.d_lse_row);
    x.d_lse = d_lse;
    char* d_query = nullptr;
    set_place(g, wanted.query, batch, &d_query, &x.d_query_head, &x.d_query_row);
    x.d_query = d_query;
    short_gradients<T>(g.storage, x, key_head);
    if (wanted.key) {
      store_rows(x.d_key, g.key_width, keys, g.key_width, g.storage,
                 g.key_rows(wanted.key, batch, key_head), 0);
    }
    if (wanted.value) {
      store_rows(x.d_value, g.value_width, keys, g.value_width, g.storage,
                 g.key_rows(wanted.value, batch, key_head), 0);
    }
  });
}

}  // namespace

constinit const Path kShortPath{
    .id = "short",
    .summary = "few queries and keys, rows where they lie",
    .declines = short_declines,
    .declines_to_save = short_declines_to_save,
    .f32 = {.forward = short_forward<float>, .backward = short_backward<float>},
    .f64 = {.forward = short_forward<double>, .backward = short_backward<double>}};

}  // namespace fovea::engine
