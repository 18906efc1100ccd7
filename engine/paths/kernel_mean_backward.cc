#include <algorithm>

#include "engine/paths/kernel_mean_state.h"

namespace fovea::engine {
namespace {

// A chunk of keys belongs to one ticket, which keeps its gradients to itself and the queries' share
// of them apart; the shares are added in the order of the chunks.
class MeanBackward : Mean {
 public:
  MeanBackward(const Problem& problem, const Geometry& g, const Result& saved,
               const Gradients& gradients)
      : Mean(problem, g, &gradients),
        saved_(saved),
        gradients_(gradients),
        rows_(g.batches * g.heads * g.max_queries),
        records_(rows_ * mean_record(g.value_width)),
        bases_(rows_),
        shares_(chunks_ * rows_ * kMeanQuery),
        d_panels_(g.batches * g.key_heads * panel_size()),
        partial_size_(pass_.stages.score->partial_size()),
        query_partials_(g.batches * g.heads * blocks_ * partial_size_),
        key_partials_(g.batches * g.key_heads * chunks_ * partial_size_) {}

  void run(const Parallel& parallel) {
    prepare(parallel);
    each_block(parallel, [&](size_t batch, size_t head, size_t q0, size_t nq) {
      make_records(batch, head, q0, nq);
    });
    run_tickets(parallel, g_.batches * g_.key_heads * chunks_, [&](size_t, size_t ticket) {
      const size_t head = ticket / chunks_;
      keys(head / g_.key_heads, head % g_.key_heads, ticket % chunks_);
    });
    each_block(parallel, [&](size_t batch, size_t head, size_t q0, size_t nq) {
      queries(batch, head, q0, nq);
    });
    if (partial_size_) store_parameters();
  }

 private:
  bool logs(size_t first, size_t n) const {
    return std::any_of(bases_.data() + first, bases_.data() + first + n,
                       [](float base) { return base != 0; });
  }

  void make_records(size_t batch, size_t head, size_t q0, size_t nq) {
    const size_t values = g_.value_width, first = row(batch, head, q0);
    float o[kMeanBlock * kMeanValues], g[kMeanBlock * kMeanValues], stats[kMeanBlock * kStatistics];
    const auto load = [&](const View& view, size_t width, float* out) {
      load_rows(DType::kFloat32, g_.query_rows(view, batch, head), q0, nq, width, out, width);
    };
    load(saved_.output, values, o);
    load(gradients_.output, values, g);
    load(saved_.statistics, kStatistics, stats);
    const bool has_log = loops_.forward_log != nullptr;
    for (size_t r = 0; r < nq; ++r) {
      const float b = query(first + r)[kMeanWidth], inverse = stats[r * kStatistics + has_log];
      float* record = records_.data() + (first + r) * mean_record(values);
      float term = 0;
      for (size_t e = 0; e < values; ++e) {
        term += g[r * values + e] * o[r * values + e];
        record[1 + e] = g[r * values + e] * inverse * b * b;
        record[1 + values + e] = g[r * values + e] * inverse;
      }
      record[0] = term * inverse * b * b;
      bases_[first + r] = has_log ? stats[r * kStatistics] : 0.0f;
    }
  }

  void keys(size_t batch, size_t key_head, size_t chunk) {
    const size_t n = chunk_keys(batch, chunk), offset = chunk * chunk_ * panel_stride();
    float* d_panel = d_panels_.data() + (batch * g_.key_heads + key_head) * panel_size() + offset;
    std::fill_n(d_panel, chunk_ * panel_stride(), 0.0f);
    const MeanBackwardLoops& loops = mean_backward_loops(kernel_);
    for (size_t head = key_head * g_.group; head < (key_head + 1) * g_.group; ++head) {
      std::fill_n(share(chunk, row(batch, head, 0)), g_.query_count[batch] * kMeanQuery, 0.0f);
      for (size_t j = 0; j < n; j += kMeanKeys) {
        for (size_t q0 = 0; q0 < g_.query_count[batch]; q0 += kMeanBlock) {
          const size_t first = row(batch, head, q0),
                       nq = std::min(kMeanBlock, g_.query_count[batch] - q0);
          MeanBlock block;
          block.rows = nq;
          block.keys = std::min(kMeanKeys, n - j);
          block.values = g_.value_width;
          block.query = query(first);
          block.base = bases_.data() + first;
          block.panel = panel(batch, key_head) + offset + j * panel_stride();
          block.record = records_.data() + first * mean_record(g_.value_width);
          block.d_query = share(chunk, first);
          block.d_panel = d_panel + j * panel_stride();
          (logs(first, nq) ? loops.by_log : loops.by_value)(block);
        }
      }
    }
    store_keys(batch, key_head, chunk, d_panel);
  }

  void store_keys(size_t batch, size_t key_head, size_t chunk, const float* d_panel) {
    const size_t values = g_.value_width, n = chunk_keys(batch, chunk), from = chunk * chunk_,
                 width = g_.key_width;
    const Rows k = g_.key_rows(pass_.problem.key, batch, key_head);
    float* partial = partial_size_
                         ? key_partials_.data() +
                               ((batch * g_.key_heads + key_head) * chunks_ + chunk) * partial_size_
                         : nullptr;
    if (partial) std::fill_n(partial, partial_size_, 0.0f);
    float d_prepared[kMeanBlock * kMeanWidth], d_value[kMeanBlock * kMeanValues];
    ScratchArray<float> d_key(kMeanBlock * width);
    for (size_t j0 = 0; j0 < n; j0 += kMeanBlock) {
      const size_t some = std::min(kMeanBlock, n - j0);
      for (size_t j = 0; j < some; ++j) {
        const float* place =
            d_panel + (j0 + j) / lanes() * lanes() * panel_stride() + (j0 + j) % lanes();
        for (size_t e = 0; e < width_; ++e) d_prepared[j * width_ + e] = place[e * lanes()];
        for (size_t e = 0; e < values; ++e)
          d_value[j * values + e] = place[(kMeanWidth + e) * lanes()];
      }
      const float* d_rows = d_prepared;
      if (pass_.stages.score->prepared_key_width()) {
        pass_.stages.score->unprepare_key(
            batch, key_head, from + j0, some, direct<float>(DType::kFloat32, k, from + j0),
            static_cast<size_t>(k.stride), d_prepared, d_key.data(), width, partial);
        d_rows = d_key.data();
      }
      if (gradients_.key) {
        store_rows(d_rows, width, some, width, DType::kFloat32,
                   g_.key_rows(gradients_.key, batch, key_head), from + j0);
      }
      if (gradients_.value) {
        store_rows(d_value, values, some, values, DType::kFloat32,
                   g_.key_rows(gradients_.value, batch, key_head), from + j0);
      }
    }
    if (chunk + 1 == chunks_) clear_unseen(batch, key_head);
  }

  // No query sees keys past a limit.
  void clear_unseen(size_t batch, size_t key_head) const {
    const auto clear = [&](const View& view, size_t width) {
      const Rows rows = view ? g_.key_rows(view, batch, key_head) : Rows{};
      for (size_t j = g_.key_limit[batch]; view && j < g_.key_count[batch]; ++j) {
        std::fill_n(direct<float>(DType::kFloat32, rows, j), width, 0.0f);
      }
    };
    clear(gradients_.key, g_.key_width);
    clear(gradients_.value, g_.value_width);
  }

  void queries(size_t batch, size_t head, size_t q0, size_t nq) {
    const size_t first = row(batch, head, q0), width = g_.query_width;
    float total[kMeanBlock * kMeanQuery] = {}, d_prepared[kMeanBlock * kMeanQuery];
    for (size_t chunk = 0; chunk < chunks_; ++chunk) {
      const float* part = share(chunk, first);
      for (size_t i = 0; i < nq * kMeanQuery; ++i) total[i] += part[i];
    }
    for (size_t r = 0; r < nq; ++r) {
      const float b = query(first + r)[kMeanWidth];
      std::copy_n(total + r * kMeanQuery, width_, d_prepared + r * (width_ + 1));
      d_prepared[r * (width_ + 1) + width_] =
          total[r * kMeanQuery + kMeanWidth] / (b * b * b);  // c holds b^2
    }
    float* partial =
        partial_size_ ? query_partials_.data() +
                            ((batch * g_.heads + head) * blocks_ + q0 / kMeanBlock) * partial_size_
                      : nullptr;
    if (partial) std::fill_n(partial, partial_size_, 0.0f);
    const Rows q = g_.query_rows(pass_.problem.query, batch, head);
    ScratchArray<float> d_query(kMeanBlock * width);
    if (g_.key_limit[batch] == 0)  // such queries may hold anything
      std::fill_n(d_query.data(), nq * width, 0.0f);
    else
      pass_.stages.score->unprepare_query(
          batch, head, q0, nq, direct<float>(DType::kFloat32, q, q0), static_cast<size_t>(q.stride),
          d_prepared, d_query.data(), width, partial);
    if (gradients_.query)
      store_rows(d_query.data(), width, nq, width, DType::kFloat32,
                 g_.query_rows(gradients_.query, batch, head), q0);
  }

  void store_parameters() const {
    Vector<float> total(partial_size_);
    const auto add = [&](const float* part) {
      for (size_t i = 0; i < partial_size_; ++i) total[i] += part[i];
    };
    for (size_t batch = 0; batch < g_.batches; ++batch) {
      for (size_t head = 0; head < g_.heads; ++head) {
        std::fill(total.begin(), total.end(), 0.0f);
        for (size_t b = 0; b * kMeanBlock < g_.query_count[batch]; ++b) {
          add(query_partials_.data() + ((batch * g_.heads + head) * blocks_ + b) * partial_size_);
        }
        for (size_t c = 0; c < chunks_ && head % g_.group == 0; ++c) {
          add(key_partials_.data() +
              ((batch * g_.key_heads + head / g_.group) * chunks_ + c) * partial_size_);
        }
        pass_.stages.score->store_parameters(batch, head, total.data());
      }
    }
  }

  float* share(size_t chunk, size_t row) const {
    return shares_.data() + (chunk * rows_ + row) * kMeanQuery;
  }

  const Result& saved_;
  const Gradients& gradients_;
  const size_t rows_;
  ScratchArray<float> records_, bases_, shares_, d_panels_;
  const size_t partial_size_;
  ScratchArray<float> query_partials_, key_partials_;
};

}  // namespace

void kernel_mean_backward(const Problem& problem, const Geometry& geometry, const Result& saved,
                          const Gradients& gradients, const Parallel& parallel) {
  MeanBackward(problem, geometry, saved, gradients).run(parallel);
}

}  // namespace fovea::engine
