// The stages that a driver composes, with one virtual call for each tile. Each stage is in one file,
// forward and backward together.
//
// A stage object belongs to one call and one SIMD target. It holds scalars and pointers. All workers
// share it: its functions are const, and write only where the tile or the `partial` argument points.
//
// Gradients of a stage's parameters: the driver passes partial sums of `partial_size()` elements,
// zeroed, one for each (batch, head), and adds them up in a fixed order. Then it calls
// `store_parameters` for each, in order, on one thread. That function ADDS to the gradient array,
// which the driver has zeroed.
// If `partial` is null, these gradients are not wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "engine/runtime/scratch.h"
#include "engine/tile.h"
#include "fovea/engine.h"

namespace fovea::engine {

// Parameters of empty default bodies are named for the reader.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

// The form in which a kernel of distance is used: log K, which most normalisers take, or K. For
// other scores there is no difference.
enum class Face : int { kLog, kValue };

template <class T>
class ScoreStage : public InScratch {
 public:
  virtual ~ScoreStage() = default;

  // Rows are prepared once: projected, normalised, exponentiated. A width of 0: the rows are used
  // as they are.
  virtual size_t prepared_query_width() const { return 0; }
  virtual size_t prepared_key_width() const { return 0; }
  virtual void prepare_query(size_t batch, size_t head, size_t row0, size_t n, const T* in,
                             size_t in_stride, T* out) const {}
  virtual void prepare_key(size_t batch, size_t head, size_t row0, size_t n, const T* in,
                           size_t in_stride, T* out) const {}
  // Backward of the two: turns the gradient of prepared rows into that of the rows, and adds to
  // `partial` (see the top).
  virtual void unprepare_query(size_t batch, size_t head, size_t row0, size_t n, const T* in,
                               size_t in_stride, const T* d_prepared, T* d_in, size_t d_in_stride,
                               T* partial) const {}
  virtual void unprepare_key(size_t batch, size_t head, size_t row0, size_t n, const T* in,
                             size_t in_stride, const T* d_prepared, T* d_in, size_t d_in_stride,
                             T* partial) const {}

  // Keys are packed in panels of kPanelKeys keys: the elements of a panel; 0: `score` reads the rows.
  // The last panel of a sequence may have nk < kPanelKeys keys, and is padded with zeros.
  virtual size_t panel_size() const { return 0; }
  virtual void pack_keys(const T* rows, size_t stride, size_t nk, T* panel) const {}

  // Fills tile.s; the entries of masked pairs are arbitrary, also NaN.
  virtual void score(Tile<T>& tile) const = 0;
  // Whether `score` adds tile.addend.
  virtual bool adds() const { return false; }

  // From tile.ds: adds to (or, when tile.first, stores) tile.dq, tile.dk. Pairs whose ds is zero
  // contribute nothing, whatever their operands hold, when !tile.finite.
  virtual bool needs_raw() const { return false; }
  virtual void backward_query(Tile<T>& tile) const = 0;
  virtual void backward_key(Tile<T>& tile) const = 0;
  virtual size_t partial_size() const { return 0; }
  virtual void backward_parameters(const Tile<T>& tile, T* partial) const {}
  virtual void store_parameters(size_t batch, size_t head, const T* partial) const {}
  // The three of them in one pass, for a score whose derivative costs more than the sums (additive,
  // kernels). Where fused_backward(), the driver calls `backward` instead of them, with tile.dq,
  // tile.dk or `partial` null when not wanted; `first_query` and `first_key` say whether to store
  // or add. tile.ds may be overwritten.
  virtual bool fused_backward() const { return false; }
  virtual void backward(Tile<T>& tile, bool first_query, bool first_key, T* partial) const {}
};

template <class T>
class ModifierStage : public InScratch {
 public:
  virtual ~ModifierStage() = default;
  // A gradient of the size of queries, or of queries x keys, is not summed in partials: `backward`
  // adds to it in place, and the driver runs tiles that share an element one after another, in a
  // fixed order.
  struct Sharing {
    bool batches = false, heads = false,
         keys = false;  // along which dimensions tiles share elements
  };
  virtual Sharing sharing() const { return {}; }
  // Elements for each query row, from begin_rows to finish_rows.
  virtual size_t row_scratch() const { return 0; }
  // Whether it needs a tile of its own between apply and backward.
  virtual bool keeps_tile() const { return false; }
  virtual void begin_rows(Tile<T>& tile, T* scratch) const {}
  virtual void apply(Tile<T>& tile, const T* scratch,
                     T* saved) const = 0;  // saved: null in forward
  // If `apply` would only add an array to this tile: that array, which may be built in the scratch.
  // The score then adds it, if it adds(), and the first modifier needs no pass over the tile.
  virtual Addend<T> addend(const Tile<T>& tile, T* scratch) const { return {}; }
  // Forward: weights are in tile.s. First multiply what the scratch has from earlier tiles by
  // tile.rows.carry.
  virtual void after_weights(Tile<T>& tile, T* scratch) const {}
  // Forward: final output rows are in tile.o. First multiply what the scratch has by
  // tile.rows.carry.
  virtual void finish_rows(Tile<T>& tile, T* scratch) const {}
  // Backward of one tile. `backward_weights` runs when tile.ds holds dA and tile.s the weights;
  // `backward` when tile.ds holds the gradient after this modifier, and leaves the one before it.
  virtual void backward_weights(Tile<T>& tile, T* scratch, T* partial) const {}
  virtual void backward(Tile<T>& tile, T* scratch, const T* saved, T* partial) const = 0;
  // Adds the modifier's own part to tile.dq.
  virtual void backward_query(Tile<T>& tile, T* scratch) const {}
  virtual size_t partial_size() const { return 0; }
  virtual void store_parameters(size_t batch, size_t head, const T* partial) const {}
};

enum class Kind {
  kStreaming,  // one pass with a rescaled running state
  kThreshold,  // sees all scores of a block of rows at once, then weights follow
};
enum class RowTerm {
  kNone,
  kOutput,  // the output's gradient times the output
  kRows,    // computed by row_terms from whole rows
};

template <class T>
class NormaliserStage : public InScratch {
 public:
  virtual ~NormaliserStage() = default;
  virtual Kind kind() const = 0;
  virtual Face face() const { return Face::kLog; }
  virtual RowTerm row_term() const { return RowTerm::kNone; }

  // Streaming: scores in tile.s (masked places already -infinity, or 0 for Face::kValue) become
  // weights; updates tile.rows.
  virtual void begin(const Tile<T>& tile) const {}
  virtual void weigh(Tile<T>& tile) const {}
  // Streaming: the factor that makes tile.o final goes to rows.carry, the statistics to rows.stats,
  // lse to `lse` if not null.
  virtual void finish(Tile<T>& tile, T* lse) const {}

  // Threshold: tile.s holds every score of these rows (nk may exceed kMaxKeys); leaves final
  // weights and statistics, and 1 in rows.carry. Streaming and threshold: a row with a NaN or
  // +infinity among its scores gets NaN in rows.carry, in its first statistic and in lse; its output
  // is NaN then, and the driver sees to its weights when they are made again (tiles/spoiled.h). A
  // row that saw no key (no score above -infinity) gets 0 in rows.carry, and the driver counts it.
  virtual void solve(Tile<T>& tile, T* lse) const {}

  // Whether `backward` needs the scores again, as tile.scores.
  virtual bool needs_scores() const { return false; }
  // Backward: final weights from the scores in tile.s and the saved statistics (tile.stats).
  virtual void weights(Tile<T>& tile) const = 0;
  // tile.ds: gradient of the weights -> gradient of the scores, given the weights in tile.s and
  // tile.row_term.
  virtual void backward(Tile<T>& tile) const = 0;
  // RowTerm::kRows: from all weights (tile.s) and their gradients (tile.ds) of these rows.
  virtual void row_terms(const Tile<T>& tile, T* terms) const {}
  // Threshold: for the path `support`, from a row's saved statistics, which only the stage itself
  // reads. The number of weights above 0 in a row of `keys` keys; `keys` if it was not counted.
  virtual size_t support_size(const T* stats, size_t keys) const { return keys; }
  // A bound that all scores with weight exceed, and few others.
  virtual T below_support(size_t head, const T* stats) const {
    return -std::numeric_limits<T>::infinity();
  }
  // The row that starts at key k0 is reduced to these n columns, ascending: changes its statistics
  // into those of the shorter row.
  virtual void close_up(const int32_t* columns, size_t n, size_t k0, T* stats) const {}
  // sink, alpha: with tile.stats and tile.row_term of a block of rows, and for RowTerm::kRows also
  // all their weights and gradients.
  virtual size_t partial_size() const { return 0; }
  virtual void backward_parameters(const Tile<T>& tile, T* partial) const {}
  virtual void store_parameters(size_t head, const T* partial) const {}
};

enum class Cover { kNone, kSome, kAll };

// Ranges of keys: ascending, none empty, none touching the next.
struct KeyRanges {
  static constexpr size_t kMost = 8;
  struct Range {
    size_t begin, end;
  };
  size_t count = 0;
  Range each[kMost];
};

// Which pairs are allowed. Not a template: it uses positions only. Several structures: all must allow.
class StructureStage : public InScratch {
 public:
  virtual ~StructureStage() = default;
  virtual Cover cover(size_t batch, size_t head, size_t q0, size_t nq, size_t k0,
                      size_t nk) const = 0;
  // A range that holds every key query i sees; exact unless `irregular`.
  virtual void range(size_t batch, size_t head, size_t i, size_t* begin, size_t* end) const = 0;
  virtual bool irregular() const { return false; }
  // keep[c] &= may query i see key k0 + c.
  virtual void mask(size_t batch, size_t head, size_t i, size_t k0, size_t nk,
                    uint8_t* keep) const {}
  virtual bool allows(size_t batch, size_t head, size_t i, size_t j) const = 0;
  // A key at or after k, before which queries [q0, q0 + nq) see nothing from k on; SIZE_MAX if they
  // see nothing at all there. A structure that cannot tell says k.
  virtual size_t seek(size_t batch, size_t head, size_t q0, size_t nq, size_t k) const { return k; }
  // How many ranges of keys a query sees at most; 0: they cannot be listed. And these ranges.
  virtual size_t most_ranges() const { return irregular() ? 0 : 1; }
  virtual void ranges(size_t batch, size_t head, size_t i, KeyRanges* out) const {
    range(batch, head, i, &out->each[0].begin, &out->each[0].end);
    out->count = out->each[0].begin < out->each[0].end ? 1 : 0;
  }
};

#pragma GCC diagnostic pop

}  // namespace fovea::engine
