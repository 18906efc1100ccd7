// Forward: a unit of work is a head, or a block of queries if there are few heads. The result of a row
// does not depend on the unit or on the order.
#include "engine/tiles/forward.h"

#include "engine/call/view.h"
#include "engine/runtime/parallel.h"

namespace fovea::engine {
namespace {

// A head is one ticket, its keys packed by the worker that uses them, when there are enough heads
// to keep all workers busy.
constexpr size_t kHeadsForEach = 4;

// bfloat16 values are summed by the processor's own instructions, where it has them and whole
// vectors of columns to fill.
Panels panels_of(const Problem& problem, const Geometry& g) {
  const bool native =
      problem.value.dtype == DType::kBFloat16 && bf16_products() && g.value_width >= 16;
  return native ? Panels::kKeysAndPairs : Panels::kKeys;
}

template <class T>
class ForwardDriver {
 public:
  ForwardDriver(const Problem& problem, const Geometry& geometry, const Result& result)
      : pass_(problem, geometry, nullptr),
        g_(geometry),
        keys_(problem, geometry, *pass_.stages.score, panels_of(problem, geometry)),
        block_(pass_, result, keys_, report_) {}

  int64_t run(const Parallel& parallel) {
    const size_t heads = g_.batches * g_.key_heads;
    if (heads >= kHeadsForEach * parallel.workers || parallel.workers <= 1)
      by_head(parallel, heads);
    else
      by_block(parallel, heads);
    report_.check(pass_.problem, g_);
    return report_.empty();
  }

 private:
  struct Worker {
    Worker(const ForwardDriver& driver, size_t keys) {
      memory = lay_out([&](Layout& layout) { lay(driver, keys, layout); });
    }
    void lay(const ForwardDriver& driver, size_t keys, Layout& layout) {
      tile = std::make_unique<TileScratch<T>>(driver.pass_, layout, driver.block_.rows(),
                                              driver.block_.columns());
      run = driver.keys_.lay(layout, keys);
    }
    Scratch memory;
    std::unique_ptr<TileScratch<T>> tile;
    KeyRun<T> run;
    PrefetchList prefetch;
    size_t prefetched = 0;  // keys of this head before this one
  };

  Vector<Worker> workers(const Parallel& parallel, size_t tickets, size_t keys) const {
    Vector<Worker> all;
    all.reserve(slots(parallel, tickets));
    for (size_t i = 0; i < slots(parallel, tickets); ++i) all.emplace_back(*this, keys);
    return all;
  }

  // Keys a worker holds at a time: all, unless every block of queries reaches a few only. A run so
  // short that it stays in the second-level cache is then begun anew when it is full; what the
  // blocks on both sides reach is packed twice.
  size_t run_keys() const {
    constexpr size_t kShortRun = 1024;
    if (g_.max_keys <= kShortRun || pass_.structure->irregular()) return g_.max_keys;
    size_t widest = 0;
    for (size_t batch = 0; batch < g_.batches; ++batch) {
      for (size_t head = 0; head < g_.heads; ++head) {
        for (size_t q0 = 0; q0 < g_.query_count[batch]; q0 += block_.rows()) {
          const size_t nq = std::min(block_.rows(), g_.query_count[batch] - q0);
          const Reach reach(*pass_.structure, batch, head, q0, nq, g_.key_count[batch]);
          widest = std::max(widest, reach.end() - reach.begin());
        }
      }
    }
    return std::min(g_.max_keys, std::max(kShortRun, 3 * widest));
  }

  void by_head(const Parallel& parallel, size_t heads) {
    auto all = workers(parallel, heads, run_keys());
    run_tickets(parallel, heads, [&](size_t worker, size_t ticket) {
      const size_t batch = ticket / g_.key_heads, key_head = ticket % g_.key_heads;
      Worker& w = all[worker];
      keys_.attach(&w.run, batch, key_head, 0);
      w.prefetched = 0;
      for (size_t h = key_head * g_.group; h < (key_head + 1) * g_.group; ++h) {
        for (size_t q0 = 0; q0 < g_.query_count[batch]; q0 += block_.rows()) {
          // Heads take equally long as a rule: of two workers, each does every other one.
          const auto coming = [&] {
            prefetch_after(w, {batch, h, q0}, ticket + all.size());
            return &w.prefetch;
          };
          block_.run(*w.tile, w.run, batch, h, q0,
                     std::min(block_.rows(), g_.query_count[batch] - q0), std::cref(coming));
        }
      }
    });
  }

  struct Place {
    size_t batch, head, q0;
  };
  // What to prefetch after the block at `here`: the queries of the next block, as many of the keys
  // that are not packed yet and, from the last block but one on, the first rows of the next head.
  void prefetch_after(Worker& w, const Place& here, size_t next_head) const {
    const Problem& p = pass_.problem;
    const auto add_keys = [&](size_t batch, size_t head, size_t from, size_t to) {
      to = std::min(to, g_.key_limit[batch]);
      prefetch_rows(p.key, g_.key_rows(p.key, batch, head), from, to, g_.key_width, &w.prefetch);
      prefetch_rows(p.value, g_.key_rows(p.value, batch, head), from, to, g_.value_width,
                    &w.prefetch);
    };
    const auto add_queries = [&](size_t batch, size_t head, size_t from) {
      const size_t to = std::min(from + block_.rows(), g_.query_count[batch]);
      prefetch_rows(p.query, g_.query_rows(p.query, batch, head), from, to, g_.query_width,
                    &w.prefetch);
    };
    const size_t n = block_.rows(),
                 after = (g_.query_count[here.batch] - here.q0 - 1) / n;  // blocks after this one
    const bool last_head = (here.head + 1) % g_.group == 0,
               head_follows = last_head && next_head < g_.batches * g_.key_heads;
    if (after > 0 || !last_head || here.q0 == 0)
      w.prefetch.clear();  // the last block goes on where the one before ended
    if (after > 0) {
      add_queries(here.batch, here.head, here.q0 + n);
      const size_t from = std::max(w.prefetched, w.run.loaded);
      w.prefetched = from + n;
      add_keys(here.batch, here.head / g_.group, from, w.prefetched);
    }
    if (!head_follows || after > 1) return;
    const size_t batch = next_head / g_.key_heads, key_head = next_head % g_.key_heads;
    if (after == 1 || here.q0 == 0) add_keys(batch, key_head, 0, 2 * n);
    if (after == 0) add_queries(batch, key_head * g_.group, 0);
  }

  void by_block(const Parallel& parallel, size_t heads) {
    constexpr size_t kChunk = 8 * kPanelKeys;
    Vector<KeyRun<T>> runs(heads);
    const auto lay = [&](Layout& layout) {
      for (KeyRun<T>& run : runs) run = keys_.lay(layout, g_.max_keys);
    };
    const Scratch memory = lay_out(lay);
    const size_t chunks = (g_.max_keys + kChunk - 1) / kChunk,
                 blocks = (g_.max_queries + block_.rows() - 1) / block_.rows();
    for (size_t i = 0; i < heads; ++i)
      keys_.attach(&runs[i], i / g_.key_heads, i % g_.key_heads, 0);
    run_tickets(parallel, heads * chunks, [&](size_t, size_t ticket) {
      const size_t i = ticket / chunks, batch = i / g_.key_heads, from = ticket % chunks * kChunk;
      const size_t to = std::min(from + kChunk, g_.key_limit[batch]);
      if (from < to) keys_.load(runs[i], batch, i % g_.key_heads, from, to);
    });
    for (KeyRun<T>& run : runs) run.loaded = SIZE_MAX;
    const size_t tickets = g_.batches * g_.heads * blocks;
    auto all = workers(parallel, tickets, 0);
    run_tickets(parallel, tickets, [&](size_t worker, size_t ticket) {
      // Long rows of a causal mask first, so that the last tickets are short.
      const size_t i = ticket / blocks, batch = i / g_.heads, h = i % g_.heads,
                   q0 = (blocks - 1 - ticket % blocks) * block_.rows();
      if (q0 < g_.query_count[batch])
        block(all[worker], runs[batch * g_.key_heads + h / g_.group], batch, h, q0);
    });
  }

  void block(Worker& w, KeyRun<T>& run, size_t batch, size_t head, size_t q0) const {
    block_.run(*w.tile, run, batch, head, q0, std::min(block_.rows(), g_.query_count[batch] - q0));
  }

  Pass<T> pass_;
  const Geometry& g_;
  KeyLoader<T> keys_;
  Report report_;
  ForwardBlock<T> block_;
};

}  // namespace

template <class T>
int64_t tiles_forward(const Problem& problem, const Geometry& geometry, const Result& result,
                      const Parallel& parallel) {
  return ForwardDriver<T>(problem, geometry, result).run(parallel);
}
template int64_t tiles_forward<float>(const Problem&, const Geometry&, const Result&,
                                      const Parallel&);
template int64_t tiles_forward<double>(const Problem&, const Geometry&, const Result&,
                                       const Parallel&);

}  // namespace fovea::engine
