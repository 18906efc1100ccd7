#include "engine/paths/kernel_mean.h"

#include <cmath>
#include <limits>

#include "engine/dispatch.h"
#include "engine/paths/kernel_mean_state.h"

namespace fovea::engine {
namespace {

// Kernels that sum to less have lost terms to underflow: such a row is done again with logarithms.
constexpr float kTiny = 1e-25f;

class MeanForward : Mean {
 public:
  MeanForward(const Problem& problem, const Geometry& g, const Result& result)
      : Mean(problem, g, nullptr),
        result_(result),
        stored_(1 + g.value_width),
        sums_(std::max<size_t>(1, chunks_) * g.batches * g.heads * g.max_queries * stored_) {}

  int64_t run(const Parallel& parallel) {
    prepare(parallel);
    const size_t tickets = g_.batches * g_.heads * blocks_;
    run_tickets(parallel, tickets * chunks_, [&](size_t, size_t ticket) {
      const size_t chunk = ticket / tickets, head = ticket % tickets / blocks_,
                   batch = head / g_.heads;
      const size_t q0 = ticket % blocks_ * kMeanBlock;
      if (q0 >= g_.query_count[batch]) return;
      MeanBlock block;
      block.rows = std::min(kMeanBlock, g_.query_count[batch] - q0);
      block.query = query(row(batch, head % g_.heads, q0));
      block.sums = sums(chunk, row(batch, head % g_.heads, q0));
      std::fill_n(block.sums, block.rows * stored_, 0.0f);
      each_run(batch, head % g_.heads, chunk, block, loops_.forward);
    });
    each_block(parallel, [&](size_t batch, size_t head, size_t q0, size_t nq) {
      finish(batch, head, q0, nq);
    });
    report_.check(pass_.problem, g_);
    return report_.empty();
  }

 private:
  float* sums(size_t chunk, size_t row) const {
    return sums_.data() + (chunk * g_.batches * g_.heads * g_.max_queries + row) * stored_;
  }
  // body(block) with the keys of a chunk, some at a time.
  template <class Body>
  void each_run(size_t batch, size_t head, size_t chunk, MeanBlock& block, const Body& body) const {
    const size_t n = chunk_keys(batch, chunk);
    block.values = g_.value_width;
    for (size_t j = 0; j < n; j += kMeanKeys) {
      block.keys = std::min(kMeanKeys, n - j);
      block.panel = panel(batch, head / g_.group) + (chunk * chunk_ + j) * panel_stride();
      body(block);
    }
  }

  // Adds the chunks up, does again what underflowed, divides and stores.
  void finish(size_t batch, size_t head, size_t q0, size_t nq) {
    const size_t first = row(batch, head, q0), values = g_.value_width;
    float total[kMeanBlock * (1 + kMeanValues)] = {}, base[kMeanBlock] = {},
                                  output[kMeanBlock * kMeanValues],
                                  stats[kMeanBlock * kStatistics] = {};
    for (size_t chunk = 0; chunk < chunks_; ++chunk) {
      const float* part = sums(chunk, first);
      for (size_t i = 0; i < nq * stored_; ++i) total[i] += part[i];
    }
    const bool has_log = loops_.forward_log != nullptr;
    if (has_log && g_.key_limit[batch] > 0) again(batch, head, q0, nq, total, base);
    int64_t empty = 0;
    for (size_t r = 0; r < nq; ++r) {
      const float sum = total[r * stored_];
      const bool spoiled = !std::isfinite(sum);
      if (spoiled) report_.spoiled(first + r);
      const bool weighs = !spoiled && std::fabs(sum) >= std::numeric_limits<float>::min();
      const float nothing = spoiled ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
      const float inverse = weighs ? 1 / sum : nothing;
      if (has_log)
        stats[r * kStatistics] = weighs ? base[r] : nothing;  // as softmax: maximum, 1 / sum
      stats[r * kStatistics + has_log] = inverse;
      empty += !weighs && !spoiled;
      for (size_t e = 0; e < values; ++e)
        output[r * values + e] = total[r * stored_ + 1 + e] * inverse;
    }
    report_.empty(empty);
    const auto rows = [&](const View& view) { return g_.query_rows(view, batch, head); };
    if (result_.output)
      store_rows(output, values, nq, values, DType::kFloat32, rows(result_.output), q0);
    if (result_.statistics)
      store_rows(stats, kStatistics, nq, kStatistics, DType::kFloat32, rows(result_.statistics),
                 q0);
  }

  void again(size_t batch, size_t head, size_t q0, size_t nq, float* total, float* base) const {
    size_t which[kMeanBlock], n = 0;
    float q[kMeanBlock * kMeanQuery], top[kMeanBlock], sum[kMeanBlock * (1 + kMeanValues)] = {};
    for (size_t r = 0; r < nq; ++r) {
      if (total[r * stored_] >= kTiny) continue;
      std::copy_n(query(row(batch, head, q0 + r)), kMeanQuery, q + n * kMeanQuery);
      top[n] = -std::numeric_limits<float>::infinity();
      which[n++] = r;
    }
    if (n == 0) return;
    MeanBlock block;
    block.rows = n;
    block.query = q;
    block.base = top;
    block.sums = sum;
    for (size_t c = 0; c < chunks_; ++c)
      each_run(batch, head, c, block, [&](const MeanBlock& b) { loops_.nearest(b, top); });
    for (size_t c = 0; c < chunks_; ++c) each_run(batch, head, c, block, loops_.forward_log);
    for (size_t i = 0; i < n; ++i) {
      const bool reached = top[i] > -std::numeric_limits<float>::infinity();
      for (size_t e = 0; e < stored_; ++e)
        total[which[i] * stored_ + e] = reached ? sum[i * stored_ + e] : 0.0f;
      base[which[i]] = top[i];
    }
  }

  const Result& result_;
  const size_t stored_;  // floats per row and chunk: the sum of weights, then of weighted values
  ScratchArray<float> sums_;
  Report report_;
};

Reason kernel_mean_declines(const Request& request) {
  const Problem& problem = request.problem;
  const Geometry& g = request.geometry;
  const auto* kernel = std::get_if<Kernel>(&problem.score.kind);
  if (!kernel || !problem.score.modifiers.empty()) return {"the score is not a plain kernel"};
  if (!std::holds_alternative<KernelRatio>(problem.normaliser))
    return {"the normaliser is not kernel_ratio"};
  if (g.graph) return {"the structure is a graph"};
  for (const auto& part : problem.structure.all_of) {
    if (!std::holds_alternative<Dense>(part) && !std::holds_alternative<Ragged>(part))
      return {"the structure is not dense"};
  }
  if (problem.dropout_p > 0) return {"weights are dropped"};
  if (g.storage != DType::kFloat32) return {"not float32"};
  const size_t width = mean_width(*kernel, g);
  if (width == 0 || width > kMeanWidth) return {"%zu dimensions, 1 to %zu", width, kMeanWidth};
  if (g.value_width == 0 || g.value_width > kMeanValues) {
    return {"%zu values per key, 1 to %zu", g.value_width, kMeanValues};
  }
  if (!MeanOperands(problem, g, nullptr).finite(request.gradients, request.parallel))
    return {"NaN, infinity or a very large number among the operands"};
  return {};
}

int64_t kernel_mean_forward(const Problem& problem, const Geometry& geometry, const Result& result,
                            const Parallel& parallel) {
  return MeanForward(problem, geometry, result).run(parallel);
}

}  // namespace

constinit const Path kKernelMeanPath{
    .id = "kernel_mean",
    .summary = "weights used in registers, no tile stored",
    .declines = kernel_mean_declines,
    .f32 = {.forward = kernel_mean_forward, .backward = kernel_mean_backward}};

}  // namespace fovea::engine
