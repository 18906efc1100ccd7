// What the forward and the backward pass of kernel means share: prepared queries, packed keys, and
// how they are divided.
#pragma once

#include <algorithm>
#include <atomic>

#include "engine/paths/kernel_mean.h"
#include "engine/tiles/pass.h"
#include "engine/loops/rows.h"
#include "engine/runtime/parallel.h"
#include "engine/runtime/scratch.h"

namespace fovea::engine {

// Queries in a ticket (a unit of work).
inline constexpr size_t kMeanBlock = 64;
// Keys for a block of queries at a time: 1,024 keys of four floats and their gradients are 32 KB,
// which fit the first-level cache.
inline constexpr size_t kMeanKeys = 1024;
// A row sums its keys in at most this many chunks, the same for any number of workers; a chunk is a
// unit of work.
inline constexpr size_t kMeanChunks = 16;
// Dimensions of the points as the metric leaves them.
inline size_t mean_width(const Kernel& kernel, const Geometry& g) {
  return kernel.metric && kernel.metric.rank == 2 ? static_cast<size_t>(kernel.metric.size[0])
                                                  : g.query_width;
}

// The points and values of a call, and how they are divided: queries in blocks, keys in chunks.
class MeanOperands {
 public:
  MeanOperands(const Problem& problem, const Geometry& g, const Gradients* gradients)
      : pass_(problem, g, gradients),
        g_(g),
        width_(mean_width(std::get<Kernel>(problem.score.kind), g)),
        blocks_((g.max_queries + kMeanBlock - 1) / kMeanBlock),
        chunk_((std::max<size_t>(1, g.max_keys) + kMeanChunks * kMeanKeys - 1) /
               (kMeanChunks * kMeanKeys) * kMeanKeys),
        chunks_((g.max_keys + chunk_ - 1) / chunk_) {}

  // Whether every point, as metric and bandwidth leave it, every value and, where gradients are
  // wanted, every gradient of the output is finite as rows.h has it. The loops multiply weights of 0
  // with all of them; the tiles do not.
  bool finite(const Gradients* gradients, const Parallel& parallel) const {
    const size_t query_tickets = g_.batches * g_.heads * blocks_,
                 key_tickets = g_.batches * g_.key_heads * chunks_;
    std::atomic<bool> all = true;
    run_tickets(parallel, query_tickets + key_tickets, [&](size_t, size_t ticket) {
      const bool is_query = ticket < query_tickets;
      if (!(is_query ? finite_queries(gradients, ticket) : finite_keys(ticket - query_tickets)))
        all = false;
    });
    return all;
  }

 protected:
  size_t chunk_keys(size_t batch, size_t chunk) const {
    const size_t from = std::min(chunk * chunk_, g_.key_limit[batch]);
    return std::min(from + chunk_, g_.key_limit[batch]) - from;
  }
  // body(batch, head, first query, queries) with what the block of that number has.
  template <class Body>
  void with_block(size_t number, const Body& body) const {
    const size_t head = number / blocks_, batch = head / g_.heads,
                 q0 = number % blocks_ * kMeanBlock;
    if (q0 < g_.query_count[batch])
      body(batch, head % g_.heads, q0, std::min(kMeanBlock, g_.query_count[batch] - q0));
  }
  // The same for each block of queries.
  template <class Body>
  void each_block(const Parallel& parallel, const Body& body) const {
    run_tickets(parallel, g_.batches * g_.heads * blocks_,
                [&](size_t, size_t ticket) { with_block(ticket, body); });
  }

  // Queries [q0, q0 + nq) as the score prepares them: [nq][width_ + 1], the point and 1 / bandwidth.
  void prepare_queries(size_t batch, size_t head, size_t q0, size_t nq, float* prepared) const {
    const Rows rows = g_.query_rows(pass_.problem.query, batch, head);
    pass_.stages.score->prepare_query(batch, head, q0, nq, direct<float>(DType::kFloat32, rows, q0),
                                      static_cast<size_t>(rows.stride), prepared);
  }
  // body(first key, keys, rows, stride) for the keys of a chunk as the score wants them, kMeanBlock
  // at a time.
  template <class Body>
  void each_keys(size_t batch, size_t key_head, size_t chunk, const Body& body) const {
    const Rows k = g_.key_rows(pass_.problem.key, batch, key_head);
    const auto& score = *pass_.stages.score;
    const size_t from = chunk * chunk_, n = chunk_keys(batch, chunk),
                 k_stride = static_cast<size_t>(k.stride);
    float prepared[kMeanBlock * kMeanWidth];
    for (size_t j0 = 0; j0 < n; j0 += kMeanBlock) {
      const size_t some = std::min(kMeanBlock, n - j0);
      const float* rows = direct<float>(DType::kFloat32, k, from + j0);
      if (score.prepared_key_width()) {
        score.prepare_key(batch, key_head, from + j0, some, rows, k_stride, prepared);
        body(from + j0, some, prepared, width_);
      } else {
        body(from + j0, some, rows, k_stride);
      }
    }
  }

  Pass<float> pass_;
  const Geometry& g_;
  const size_t width_;
  const size_t blocks_, chunk_, chunks_;

 private:
  bool finite_queries(const Gradients* gradients, size_t number) const {
    const auto& loops = row_loops<float>();
    bool finite = true;
    with_block(number, [&](size_t batch, size_t head, size_t q0, size_t nq) {
      if (g_.key_limit[batch] == 0) return;  // queries that see no key are not read
      float prepared[kMeanBlock * kMeanQuery];
      prepare_queries(batch, head, q0, nq, prepared);
      finite = loops.finite(prepared, width_ + 1, nq, width_ + 1);
      if (!gradients) return;
      const Rows rows = g_.query_rows(gradients->output, batch, head);
      finite = finite && loops.finite(direct<float>(DType::kFloat32, rows, q0),
                                      static_cast<size_t>(rows.stride), nq, g_.value_width);
    });
    return finite;
  }
  bool finite_keys(size_t number) const {
    const auto& loops = row_loops<float>();
    const size_t head = number / chunks_, batch = head / g_.key_heads, chunk = number % chunks_;
    const Rows v = g_.key_rows(pass_.problem.value, batch, head % g_.key_heads);
    bool finite =
        loops.finite(direct<float>(DType::kFloat32, v, chunk * chunk_),
                     static_cast<size_t>(v.stride), chunk_keys(batch, chunk), g_.value_width);
    each_keys(batch, head % g_.key_heads, chunk,
              [&](size_t, size_t n, const float* rows, size_t stride) {
                finite = finite && loops.finite(rows, stride, n, width_);
              });
    return finite;
  }
};

// With queries prepared and keys packed.
class Mean : protected MeanOperands {
 protected:
  Mean(const Problem& problem, const Geometry& g, const Gradients* gradients)
      : MeanOperands(problem, g, gradients),
        kernel_(std::get<Kernel>(problem.score.kind).name),
        loops_(mean_loops(kernel_)),
        queries_(g.batches * g.heads * g.max_queries * kMeanQuery),
        panels_(g.batches * g.key_heads * panel_size()) {}

  size_t lanes() const { return loops_.lanes; }
  size_t panel_stride() const { return kMeanWidth + g_.value_width; }  // floats per key
  size_t panel_size() const { return chunks_ * chunk_ * panel_stride(); }
  float* panel(size_t batch, size_t key_head) const {
    return panels_.data() + (batch * g_.key_heads + key_head) * panel_size();
  }
  size_t row(size_t batch, size_t head, size_t q) const {
    return (batch * g_.heads + head) * g_.max_queries + q;
  }
  const float* query(size_t row) const { return queries_.data() + row * kMeanQuery; }

  void prepare(const Parallel& parallel) {
    each_block(parallel, [&](size_t batch, size_t head, size_t q0, size_t nq) {
      float prepared[kMeanBlock * kMeanQuery];
      prepare_queries(batch, head, q0, nq, prepared);
      float* out = queries_.data() + row(batch, head, q0) * kMeanQuery;
      for (size_t r = 0; r < nq; ++r, out += kMeanQuery) {
        const float* point = prepared + r * (width_ + 1);
        std::copy_n(point, width_, out);
        std::fill(out + width_, out + kMeanWidth, 0.0f);
        out[kMeanWidth] = point[width_];
      }
    });
    run_tickets(parallel, g_.batches * g_.key_heads * chunks_, [&](size_t, size_t ticket) {
      const size_t head = ticket / chunks_;
      pack(head / g_.key_heads, head % g_.key_heads, ticket % chunks_);
    });
  }

  const choice::KernelName kernel_;
  const MeanLoops& loops_;

 private:
  void pack(size_t batch, size_t key_head, size_t chunk) {
    const Rows v = g_.key_rows(pass_.problem.value, batch, key_head);
    const size_t values = g_.value_width, stride = panel_stride(),
                 v_stride = static_cast<size_t>(v.stride);
    each_keys(batch, key_head, chunk,
              [&](size_t first, size_t n, const float* rows, size_t rows_stride) {
                const float* value = direct<float>(DType::kFloat32, v, first);
                // kMeanBlock is a multiple of the lanes.
                float* to = panel(batch, key_head) + first * stride;
                std::fill_n(to, (n + lanes() - 1) / lanes() * lanes() * stride, 0.0f);
                for (size_t j = 0; j < n; ++j) {
                  float* place = to + j / lanes() * lanes() * stride + j % lanes();
                  for (size_t e = 0; e < width_; ++e)
                    place[e * lanes()] = rows[j * rows_stride + e];
                  for (size_t e = 0; e < values; ++e)
                    place[(kMeanWidth + e) * lanes()] = value[j * v_stride + e];
                }
              });
  }

  ScratchArray<float> queries_, panels_;
};

}  // namespace fovea::engine
