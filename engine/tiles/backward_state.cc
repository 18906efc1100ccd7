#include "engine/tiles/backward.h"

#include "engine/call/view.h"
#include "engine/tiles/spoiled.h"

namespace fovea::engine {

template <class T>
BackwardState<T>::BackwardState(const Problem& problem, const Geometry& g,
                                const Result& saved_result, const Gradients& wanted)
    : pass(problem, g, &wanted),
      geometry(g),
      saved(saved_result),
      gradients(wanted),
      keys(problem, g, *pass.stages.score, Panels::kKeysAndValues),
      block_count((g.max_queries + kMaxQueries - 1) / kMaxQueries),
      partial_size(pass.stages.score->partial_size()),
      wants_query(static_cast<bool>(wanted.query)),
      wants_key(static_cast<bool>(wanted.key)),
      wants_value(static_cast<bool>(wanted.value)) {
  for (const auto& modifier : pass.stages.modifiers) partial_size += modifier->partial_size();
  const size_t heads = g.batches * g.heads, rows = heads * g.max_queries;
  blocks.resize(heads * block_count);
  turns = Vector<Turn>(heads * block_count);
  head_turns = Vector<Turn>(heads);
  totals.assign(heads * partial_size, T(0));
  normaliser_partials.assign(heads * block_count * pass.stages.normaliser->partial_size(), T(0));
  row_terms = ScratchArray<T>(rows + kRowPadding);
  statistics = ScratchArray<T>(rows * kStatistics);
  if (wanted.lse) d_lse = ScratchArray<T>(rows);
  const bool converts = problem.query.dtype != dtype_of<T>(),
             prepares = pass.stages.score->prepared_query_width() != 0;
  if (converts || prepares) q_rows = ScratchArray<T>(rows * pass.query_width());
  if (converts) g_rows = ScratchArray<T>(rows * g.value_width);
  // A parameter gradient may come through the queries', wanted or not.
  const bool through = prepares && pass.stages.score->partial_size() != 0;
  if (((converts || prepares) && wants_query) || through)
    dq_rows = ScratchArray<T>(rows * pass.query_width());
}

template <class T>
const T* BackwardState<T>::rows_in_type(const View& view, size_t batch, size_t head, size_t q0,
                                        size_t nq, size_t width, T* scratch, size_t* stride) const {
  const Rows rows = geometry.query_rows(view, batch, head);
  if (const T* as_is = direct<T>(view.dtype, rows, q0)) {
    *stride = static_cast<size_t>(rows.stride);
    return as_is;
  }
  load_rows(view.dtype, rows, q0, nq, width, scratch, width);
  *stride = width;
  return scratch;
}

template <class T>
void BackwardState<T>::prepare(size_t batch, size_t head, size_t b) {
  const Geometry& g = geometry;
  const size_t q0 = b * kMaxQueries;
  if (q0 >= g.query_count[batch]) return;
  const size_t nq = std::min(kMaxQueries, g.query_count[batch] - q0), first = row(batch, head, q0);
  const size_t width = pass.query_width(), ev = g.value_width;
  const auto& loops = row_loops<T>();
  QueryBlock<T>& block = at(batch, head, b);
  // Rows that need no conversion have no array to convert them into.
  const auto own_rows = [&](const ScratchArray<T>& rows, size_t columns) {
    return rows.data() ? rows.data() + first * columns : nullptr;
  };

  // Scratch for what is only converted on the way: one block of the widest rows.
  const ScratchArray<T> plain(kMaxQueries * std::max(g.query_width, ev));
  const auto& score = *pass.stages.score;
  if (score.prepared_query_width()) {
    size_t stride;
    const T* rows =
        rows_in_type(pass.problem.query, batch, head, q0, nq, g.query_width, plain.data(), &stride);
    score.prepare_query(batch, head, q0, nq, rows, stride, q_rows.data() + first * width);
    block.q = q_rows.data() + first * width;
    block.q_stride = width;
  } else {
    block.q = rows_in_type(pass.problem.query, batch, head, q0, nq, width, own_rows(q_rows, width),
                           &block.q_stride);
  }
  block.g = rows_in_type(gradients.output, batch, head, q0, nq, ev, own_rows(g_rows, ev),
                         &block.g_stride);
  if (dq_rows.data()) {
    block.dq = dq_rows.data() + first * width;
    block.dq_stride = width;
  } else if (wants_query) {
    const Rows rows = g.query_rows(gradients.query, batch, head);
    block.dq = direct<T>(gradients.query.dtype, rows, q0);
    block.dq_stride = static_cast<size_t>(rows.stride);
  }
  block.finite = loops.finite(block.q, block.q_stride, nq, width) &&
                 loops.finite(block.g, block.g_stride, nq, ev);
  load_rows(saved.statistics.dtype, g.query_rows(saved.statistics, batch, head), q0, nq,
            kStatistics, statistics.data() + first * kStatistics, kStatistics);
  block.spoiled = any_spoiled(statistics.data() + first * kStatistics, nq);
  if (gradients.lse)
    load_rows(gradients.lse.dtype, g.query_rows(gradients.lse, batch, head), q0, nq, 1,
              d_lse.data() + first, 1);
  if (pass.stages.normaliser->row_term() == RowTerm::kOutput) {
    size_t stride;
    const T* o = rows_in_type(saved.output, batch, head, q0, nq, ev, plain.data(), &stride);
    loops.dots(block.g, block.g_stride, o, stride, nq, ev, row_terms.data() + first);
  }
  const Reach reach(*pass.structure, batch, head, q0, nq, g.key_count[batch]);
  block.first_unit = reach.begin() / kUnitKeys;
  block.end_unit = (reach.end() + kUnitKeys - 1) / kUnitKeys;
  turns[index(batch, head) * block_count + b].start_at(block.first_unit);
  if (pass.stages.normaliser->partial_size() &&
      pass.stages.normaliser->row_term() != RowTerm::kRows) {
    Tile<T> tile;
    show(batch, head, b, &tile);
    pass.stages.normaliser->backward_parameters(
        tile, normaliser_partials.data() +
                  (index(batch, head) * block_count + b) * pass.stages.normaliser->partial_size());
  }
}

template <class T>
void BackwardState<T>::show(size_t batch, size_t head, size_t b, Tile<T>* tile) const {
  const QueryBlock<T>& block = at(batch, head, b);
  const size_t q0 = b * kMaxQueries, first = row(batch, head, q0);
  tile->batch = batch;
  tile->head = head;
  tile->q0 = q0;
  tile->query_offset = geometry.query_offset[batch];
  tile->nq = std::min(kMaxQueries, geometry.query_count[batch] - q0);
  tile->q = block.q;
  tile->q_stride = block.q_stride;
  tile->g = block.g;
  tile->g_stride = block.g_stride;
  tile->dq = block.dq;
  tile->dq_stride = block.dq_stride;
  tile->value_width = geometry.value_width;
  tile->stats = statistics.data() + first * kStatistics;
  tile->row_term = row_terms.data() + first;
  tile->d_lse = gradients.lse ? d_lse.data() + first : nullptr;
}

template <class T>
void BackwardState<T>::finish_head(size_t batch, size_t head, T* plain, T* d_plain) {
  const Geometry& g = geometry;
  const auto& score = *pass.stages.score;
  for (size_t b = 0; b * kMaxQueries < g.query_count[batch]; ++b) {
    QueryBlock<T>& block = at(batch, head, b);
    if (!block.dq) continue;
    const size_t q0 = b * kMaxQueries, nq = std::min(kMaxQueries, g.query_count[batch] - q0);
    if (!block.touched) {
      for (size_t r = 0; r < nq; ++r)
        std::fill_n(block.dq + r * block.dq_stride, pass.query_width(), T(0));
    }
    if (!dq_rows.data()) continue;
    const T* d_rows = block.dq;
    size_t d_stride = block.dq_stride;
    const Rows d_query = wants_query ? g.query_rows(gradients.query, batch, head) : Rows{};
    T* const result = wants_query ? direct<T>(gradients.query.dtype, d_query, q0) : nullptr;
    if (score.prepared_query_width()) {
      size_t stride;
      const T* rows =
          rows_in_type(pass.problem.query, batch, head, q0, nq, g.query_width, plain, &stride);
      T* const to = result ? result : d_plain;
      d_stride = result ? static_cast<size_t>(d_query.stride) : g.query_width;
      score.unprepare_query(batch, head, q0, nq, rows, stride, block.dq, to, d_stride,
                            score.partial_size() ? total(batch, head) : nullptr);
      d_rows = to;
    }
    if (wants_query && d_rows != result) {
      store_rows(d_rows, d_stride, nq, g.query_width, gradients.query.dtype, d_query, q0);
    }
  }
}

template struct BackwardState<float>;
template struct BackwardState<double>;

}  // namespace fovea::engine
