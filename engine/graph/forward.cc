// Forward on a graph: chunks of rows, all heads of a row's block one after another.
#include "engine/graph/graph.h"

namespace fovea::engine {
namespace {

template <class T>
class GraphForward {
 public:
  GraphForward(const Problem& problem, const Geometry& geometry, const Result& result,
               const Parallel& parallel)
      : pass_(problem, geometry, nullptr),
        g_(geometry),
        result_(result),
        graph_(geometry),
        keys_(pass_, parallel) {}

  int64_t run(const Parallel& parallel) {
    const size_t chunk = graph_chunk(graph_.rows), chunks = (graph_.rows + chunk - 1) / chunk;
    Vector<Worker> workers;
    workers.reserve(slots(parallel, chunks));
    for (size_t i = 0; i < slots(parallel, chunks); ++i) workers.emplace_back(pass_, graph_, keys_);
    run_tickets(parallel, chunks, [&](size_t worker, size_t ticket) {
      const size_t end = std::min(graph_.rows, (ticket + 1) * chunk);
      for (size_t q0 = ticket * chunk; q0 < end; q0 += kMaxQueries) {
        for (size_t head = 0; head < g_.heads; ++head)
          block(workers[worker], head, q0, std::min(kMaxQueries, end - q0));
      }
    });
    report_.check(pass_.problem, g_);
    return report_.empty();
  }

 private:
  using Worker = GraphWorker<T>;

  void block(Worker& w, size_t head, size_t q0, size_t nq) {
    TileScratch<T>& scratch = *w.tile;
    Tile<T> block;
    show_queries(pass_.problem, g_, *pass_.stages.score, 0, head, q0, nq, scratch.q_plain,
                 scratch.q_prepared, &block);
    show_output(pass_, result_, scratch, &block);
    block.value_width = g_.value_width;
    block.rows = scratch.rows;
    block.s = scratch.s;
    for (size_t r = 0; r < nq; ++r) one(w, block, r);
    store_results(pass_, result_, scratch, block);
  }

  void one(Worker& w, const Tile<T>& block, size_t r) {
    const auto& [score, modifiers, normaliser] = pass_.stages;
    TileScratch<T>& scratch = *w.tile;
    Tile<T> tile = block;
    tile.q0 += r;
    tile.nq = 1;
    tile.q += r * tile.q_stride;
    tile.o += r * tile.o_stride;
    tile.rows = {block.rows.maximum + r, block.rows.sum + r, block.rows.carry + r,
                 block.rows.stats + r * kStatistics};
    tile.first = true;
    T* lse = result_.lse ? scratch.lse + r : nullptr;
    for (size_t m = 0; m < modifiers.size(); ++m)
      modifiers[m]->begin_rows(tile, scratch.modifiers[m]);
    scratch.seen[0] = w.row->score(tile, tile.q0, scratch.modifiers, {});
    if (normaliser->kind() == Kind::kStreaming) {
      normaliser->begin(tile);
      if (scratch.seen[0]) normaliser->weigh(tile);
    } else {
      normaliser->solve(tile, lse);
    }
    if (pass_.dropout) drop(pass_.dropout, tile, tile.s, tile.s);
    for (size_t m = 0; m < modifiers.size(); ++m)
      modifiers[m]->after_weights(tile, scratch.modifiers[m]);
    const size_t key_head = tile.head / g_.group;
    row_loops<T>().gather(tile.s, tile.key_index, scratch.seen[0] ? tile.nk : 0, keys_.v(key_head),
                          keys_.v_stride(key_head), g_.value_width, Into::kStore, tile.o);
    if (normaliser->kind() == Kind::kStreaming) normaliser->finish(tile, lse);
    settle_rows(pass_, scratch, tile, report_);
  }

  Pass<T> pass_;
  const Geometry& g_;
  const Result& result_;
  const GraphView graph_;
  const GraphKeys<T> keys_;
  Report report_;
};

}  // namespace

template <class T>
int64_t graph_forward(const Problem& problem, const Geometry& geometry, const Result& result,
                      const Parallel& parallel) {
  return GraphForward<T>(problem, geometry, result, parallel).run(parallel);
}
template int64_t graph_forward<float>(const Problem&, const Geometry&, const Result&,
                                      const Parallel&);
template int64_t graph_forward<double>(const Problem&, const Geometry&, const Result&,
                                       const Parallel&);

}  // namespace fovea::engine
