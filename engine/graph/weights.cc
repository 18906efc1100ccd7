// Selected weights on a graph: whole rows, the largest, sums, or one for each edge in the order of
// the input.
#include <cmath>

#include "engine/call/selection.h"
#include "engine/graph/graph.h"
#include "engine/tiles/spoiled.h"

namespace fovea::engine {
namespace {

template <class T>
class GraphWeights {
 public:
  GraphWeights(const Problem& problem, const Geometry& geometry, const Selection& selection,
               const SelectedWeights& out, const Parallel& parallel)
      : pass_(problem, geometry, nullptr),
        g_(geometry),
        writer_(geometry, selection, out),
        graph_(geometry),
        keys_(pass_, parallel) {}

  void run(const Parallel& parallel) {
    for (size_t slot = 0; slot < writer_.heads(); ++slot) writer_.clear(0, slot);
    Vector<Worker> workers;
    workers.reserve(slots(parallel, writer_.heads()));
    for (size_t i = 0; i < slots(parallel, writer_.heads()); ++i)
      workers.emplace_back(pass_, graph_, keys_);
    run_tickets(parallel, writer_.heads(), [&](size_t worker, size_t slot) {
      for (const auto& run : writer_.runs()) some_rows(workers[worker], slot, run);
    });
    report_.check(pass_.problem, g_);
  }

 private:
  using Worker = GraphWorker<T>;

  void some_rows(Worker& w, size_t slot, const typename SelectionWriter<T>::Run& run) {
    const auto& normaliser = pass_.stages.normaliser;
    TileScratch<T>& scratch = *w.tile;
    for (size_t r = 0; r < run.n; ++r) {
      const size_t row = run.q0 + r;
      Tile<T> tile;
      show_queries(pass_.problem, g_, *pass_.stages.score, 0, writer_.head(slot), row, 1,
                   scratch.q_plain, scratch.q_prepared, &tile);
      tile.value_width = g_.value_width;
      tile.s = scratch.s;
      tile.rows = scratch.rows;
      for (size_t m = 0; m < pass_.stages.modifiers.size(); ++m)
        pass_.stages.modifiers[m]->begin_rows(tile, scratch.modifiers[m]);
      if (!w.row->score(tile, row, scratch.modifiers, {})) continue;
      if (normaliser->kind() == Kind::kStreaming) {
        normaliser->begin(tile);
        normaliser->weigh(tile);
        normaliser->finish(tile, nullptr);
        row_loops<T>().scale(tile.s, tile.s_stride, 1, tile.nk, tile.rows.carry);
      } else {
        normaliser->solve(tile, nullptr);
      }
      tile.stats = tile.rows.stats;
      if (is_spoiled(tile.stats)) {
        report_.spoiled(writer_.head(slot) * g_.max_queries + row);
        w.row->score(tile, row, scratch.modifiers, {});
        Spoiled<T>(tile, normaliser->face()).put(tile.s, tile.s_stride);
      }
      row_loops<T>().mask(tile, tile.s, -std::numeric_limits<T>::infinity());
      writer_.put(tile, 0, slot, run.slot + r, graph_.begin(row));
    }
  }

  Pass<T> pass_;
  const Geometry& g_;
  SelectionWriter<T> writer_;
  const GraphView graph_;
  const GraphKeys<T> keys_;
  Report report_;
};

}  // namespace

template <class T>
void graph_weights(const Problem& problem, const Geometry& geometry, const Selection& selection,
                   const SelectedWeights& out, const Parallel& parallel) {
  GraphWeights<T>(problem, geometry, selection, out, parallel).run(parallel);
}
template void graph_weights<float>(const Problem&, const Geometry&, const Selection&,
                                   const SelectedWeights&, const Parallel&);
template void graph_weights<double>(const Problem&, const Geometry&, const Selection&,
                                    const SelectedWeights&, const Parallel&);

}  // namespace fovea::engine
