// What the forward and the backward pass of kernel means share: prepared queries, packed keys, and
// how they are divided.
#pragma once

#include <algorithm>
#include <atomic>

#include "engine/paths/kernel_mean.h"
#include "engine/tiles/pass.h"
#include "engine/loops/rows.h"
#include "engine/runtime/scratch.h"

namespace fovea::engine {

// Queries a ticket.
inline constexpr size_t kMeanBlock = 64;
// Keys that meet a block of queries at a time: 1,024 of four floats and their gradients are 32 KB,
// in the first-level cache.
inline constexpr size_t kMeanKeys = 1024;
// A row sums its keys in at most this many chunks, the same for any number of workers; a chunk is a
// unit of work.
inline constexpr size_t kMeanChunks = 16;
// Dimensions of the points as the metric leaves them.
inline size_t mean_width(const Kernel& kernel, const Geometry& g) {
  return kernel.metric && kernel.metric.rank == 2 ? static_cast<size_t>(kernel.metric.size[0])
                                                  : g.query_width;
}

class Mean {
 public:
  Mean(const Problem& problem, const Geometry& g, const Gradients* gradients)
      : pass_(problem, g, gradients),
        g_(g),
        kernel_(std::get<Kernel>(problem.score.kind)),
        width_(mean_width(kernel_, g)),
        loops_(mean_loops(kernel_.name)),
        blocks_((g.max_queries + kMeanBlock - 1) / kMeanBlock),
        chunk_((std::max<size_t>(1, g.max_keys) + kMeanChunks * kMeanKeys - 1) /
               (kMeanChunks * kMeanKeys) * kMeanKeys),
        chunks_((g.max_keys + chunk_ - 1) / chunk_),
        queries_(g.batches * g.heads * g.max_queries * kMeanQuery),
        panels_(g.batches * g.key_heads * panel_size()) {}

 protected:
  size_t lanes() const { return loops_.lanes; }
  size_t panel_stride() const { return kMeanWidth + g_.value_width; }  // floats a key
  size_t panel_size() const { return chunks_ * chunk_ * panel_stride(); }
  float* panel(size_t batch, size_t key_head) const {
    return panels_.data() + (batch * g_.key_heads + key_head) * panel_size();
  }
  size_t row(size_t batch, size_t head, size_t q) const {
    return (batch * g_.heads + head) * g_.max_queries + q;
  }
  const float* query(size_t row) const { return queries_.data() + row * kMeanQuery; }
  size_t chunk_keys(size_t batch, size_t chunk) const {
    const size_t from = std::min(chunk * chunk_, g_.key_limit[batch]);
    return std::min(from + chunk_, g_.key_limit[batch]) - from;
  }
  // body(batch, head, first query, queries) for each block of queries.
  template <class Body>
  void each_block(const Parallel& parallel, const Body& body) const {
    run_tickets(parallel, g_.batches * g_.heads * blocks_, [&](size_t, size_t ticket) {
      const size_t head = ticket / blocks_, batch = head / g_.heads,
                   q0 = ticket % blocks_ * kMeanBlock;
      if (q0 < g_.query_count[batch])
        body(batch, head % g_.heads, q0, std::min(kMeanBlock, g_.query_count[batch] - q0));
    });
  }

  // Says whether every query, key and value is finite.
  bool prepare(const Parallel& parallel) {
    std::atomic<bool> finite = true;
    each_block(parallel, [&](size_t batch, size_t head, size_t q0, size_t nq) {
      const Rows rows = g_.query_rows(pass_.problem.query, batch, head);
      const float* in = direct<float>(DType::kFloat32, rows, q0);
      const auto stride = static_cast<size_t>(rows.stride);
      float prepared[kMeanBlock * kMeanQuery];
      pass_.stages.score->prepare_query(batch, head, q0, nq, in, stride, prepared);
      if (!row_loops<float>().finite(prepared, width_ + 1, nq, width_ + 1)) finite = false;
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
      if (!pack(head / g_.key_heads, head % g_.key_heads, ticket % chunks_)) finite = false;
    });
    return finite;
  }

  Pass<float> pass_;
  const Geometry& g_;
  const Kernel& kernel_;
  const size_t width_;
  const MeanLoops& loops_;
  const size_t blocks_, chunk_, chunks_;

 private:
  bool pack(size_t batch, size_t key_head, size_t chunk) {
    const Rows k = g_.key_rows(pass_.problem.key, batch, key_head),
               v = g_.key_rows(pass_.problem.value, batch, key_head);
    const size_t from = chunk * chunk_, n = chunk_keys(batch, chunk), values = g_.value_width,
                 stride = panel_stride();
    const float* value = direct<float>(DType::kFloat32, v, from);
    const auto v_stride = static_cast<size_t>(v.stride), k_stride = static_cast<size_t>(k.stride);
    bool finite = row_loops<float>().finite(value, v_stride, n, values);
    float prepared[kMeanBlock * kMeanWidth];
    for (size_t j0 = 0; j0 < n; j0 += kMeanBlock) {
      const size_t some = std::min(kMeanBlock, n - j0);
      const float* rows = direct<float>(DType::kFloat32, k, from + j0);
      size_t rows_stride = k_stride;
      if (pass_.stages.score->prepared_key_width()) {
        pass_.stages.score->prepare_key(batch, key_head, from + j0, some, rows, k_stride, prepared);
        rows = prepared;
        rows_stride = width_;
      }
      finite = finite && row_loops<float>().finite(rows, rows_stride, some, width_);
      float* to =
          panel(batch, key_head) + (from + j0) * stride;  // kMeanBlock is a multiple of the lanes
      std::fill_n(to, (some + lanes() - 1) / lanes() * lanes() * stride, 0.0f);
      for (size_t j = 0; j < some; ++j) {
        float* place = to + j / lanes() * lanes() * stride + j % lanes();
        for (size_t e = 0; e < width_; ++e) place[e * lanes()] = rows[j * rows_stride + e];
        for (size_t e = 0; e < values; ++e)
          place[(kMeanWidth + e) * lanes()] = value[(j0 + j) * v_stride + e];
      }
    }
    return finite;
  }

  ScratchArray<float> queries_, panels_;
};

}  // namespace fovea::engine
