#include "engine/graph/transposed.h"

#include <algorithm>
#include <mutex>

#if defined(__unix__)
#include <pthread.h>
#endif

namespace fovea::engine {
namespace {

struct Kept {
  Kept(const GraphView& graph, std::shared_ptr<const Transposed> made)
      : keys(graph.keys),
        row_offsets(graph.row_offsets, graph.row_offsets + graph.rows + 1),
        columns(graph.columns, graph.columns + graph.edges),
        transposed(std::move(made)) {}
  bool is_of(const GraphView& graph) const {
    return keys == graph.keys && row_offsets.size() == graph.rows + 1 &&
           columns.size() == graph.edges &&
           std::equal(row_offsets.begin(), row_offsets.end(), graph.row_offsets) &&
           std::equal(columns.begin(), columns.end(), graph.columns);
  }
  size_t keys;
  std::vector<int32_t> row_offsets, columns;
  std::shared_ptr<const Transposed> transposed;
};

std::mutex mutex;  // of the list in transposed_of

// A fork waits until no thread is at the list, so that a child finds it whole and free.
bool watch_forks() {
#if defined(__unix__)
  pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
#endif
  return true;
}

}  // namespace

std::shared_ptr<const Transposed> transposed_of(const GraphView& graph) {
  static const bool kWatched = watch_forks();
  (void)kWatched;
  static auto* const kept = new std::vector<Kept>;  // never destroyed: threads may outlive statics;
                                                    // the last used comes last
  if (graph.edges > kTransposedEdges) return std::make_shared<const Transposed>(graph);
  const std::lock_guard lock(mutex);
  const auto found =
      std::find_if(kept->begin(), kept->end(), [&](const Kept& one) { return one.is_of(graph); });
  if (found != kept->end()) {
    std::rotate(found, found + 1, kept->end());
  } else {
    if (kept->size() == kTransposedKept) kept->erase(kept->begin());
    kept->emplace_back(graph, std::make_shared<const Transposed>(graph));
  }
  return kept->back().transposed;
}

}  // namespace fovea::engine
