// Selected weights, a block of rows at a time; no others are stored.
#include "engine/call/selection.h"
#include "engine/call/view.h"
#include "engine/runtime/parallel.h"
#include "engine/tiles/forward.h"

namespace fovea::engine {
namespace {

template <class T>
class WeightsDriver {
 public:
  WeightsDriver(const Problem& problem, const Geometry& geometry, const Selection& selection,
                const SelectedWeights& out)
      : pass_(problem, geometry, nullptr),
        g_(geometry),
        writer_(geometry, selection, out),
        keys_(problem, geometry, *pass_.stages.score, Panels::kKeys),
        block_(pass_, result_, keys_, report_) {}

  void run(const Parallel& parallel) {
    // Sums over rows are one ticket for each head; single rows may be divided among workers.
    const size_t heads = g_.batches * writer_.heads();
    const size_t parts = writer_.sums() ? 1 : std::clamp<size_t>(writer_.runs().size() / 8, 1, 8);
    for (size_t i = 0; i < heads; ++i) writer_.clear(i / writer_.heads(), i % writer_.heads());
    const size_t count = slots(parallel, heads * parts);
    Vector<Worker> workers;
    workers.reserve(count);
    for (size_t i = 0; i < count; ++i) workers.emplace_back(*this);
    // Fewer heads than workers: each head's keys are packed once, for all of them.
    const bool shared = heads < count;
    Vector<Keys> keys;
    for (size_t i = 0; i < (shared ? heads : count); ++i) keys.emplace_back(*this);
    const auto hold = [&](Keys& held, size_t i) {
      this->hold(held, i / writer_.heads(), i % writer_.heads());
    };
    if (shared) run_tickets(parallel, heads, [&](size_t, size_t i) { hold(keys[i], i); });
    run_tickets(parallel, heads * parts, [&](size_t worker, size_t ticket) {
      const size_t i = ticket / parts, part = ticket % parts, n = writer_.runs().size();
      Keys& held = keys[shared ? i : worker];
      hold(held, i);
      some_runs(*workers[worker].tile, held.run, i / writer_.heads(), i % writer_.heads(),
                n * part / parts, n * (part + 1) / parts);
    });
    report_.check(pass_.problem, g_);
  }

 private:
  struct Worker {
    explicit Worker(const WeightsDriver& driver) {
      memory = lay_out([&](Layout& layout) { lay(driver, layout); });
    }
    void lay(const WeightsDriver& driver, Layout& layout) {
      tile = std::make_unique<TileScratch<T>>(driver.pass_, layout, driver.block_.rows(),
                                              driver.block_.columns());
    }
    Scratch memory;
    std::unique_ptr<TileScratch<T>> tile;
  };
  struct Keys {
    explicit Keys(const WeightsDriver& driver) {
      memory = lay_out([&](Layout& layout) { run = driver.keys_.lay(layout, driver.g_.max_keys); });
    }
    Scratch memory;
    KeyRun<T> run;
    size_t batch = SIZE_MAX, key_head = SIZE_MAX;
  };

  void hold(Keys& keys, size_t batch, size_t slot) const {
    const size_t key_head = writer_.head(slot) / g_.group;
    if (keys.batch == batch && keys.key_head == key_head) return;
    keys_.attach(&keys.run, batch, key_head, 0);
    keys_.load(keys.run, batch, key_head, 0, g_.key_limit[batch]);
    keys.batch = batch;
    keys.key_head = key_head;
  }

  void some_runs(TileScratch<T>& scratch, const KeyRun<T>& keys, size_t batch, size_t slot,
                 size_t from, size_t to) {
    const size_t head = writer_.head(slot);
    for (size_t i = from; i < to; ++i) {
      const auto& run = writer_.runs()[i];
      const size_t end = std::min(run.q0 + run.n, g_.query_count[batch]);
      for (size_t q0 = run.q0; q0 < end; q0 += block_.rows()) {
        const size_t nq = std::min(block_.rows(), end - q0), first = run.slot + (q0 - run.q0);
        block_.weights(scratch, keys, batch, head, q0, nq, [&](const Tile<T>& tile) {
          for (size_t r = 0; r < tile.nq; ++r) writer_.put(tile, r, slot, first + r, 0);
        });
      }
    }
  }

  Pass<T> pass_;
  const Geometry& g_;
  const Result result_{};
  SelectionWriter<T> writer_;
  KeyLoader<T> keys_;
  Report report_;
  ForwardBlock<T> block_;
};

}  // namespace

template <class T>
void tiles_weights(const Problem& problem, const Geometry& geometry, const Selection& selection,
                   const SelectedWeights& out, const Parallel& parallel) {
  WeightsDriver<T>(problem, geometry, selection, out).run(parallel);
}
template void tiles_weights<float>(const Problem&, const Geometry&, const Selection&,
                                   const SelectedWeights&, const Parallel&);
template void tiles_weights<double>(const Problem&, const Geometry&, const Selection&,
                                    const SelectedWeights&, const Parallel&);

}  // namespace fovea::engine
