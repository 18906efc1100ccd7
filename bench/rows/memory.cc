// Memory: a long head's forward and backward, chosen weights, and how time and memory grow with n.
#include "bench/rows/operands.h"

namespace fovea::bench {
namespace {

Shape head(int64_t length) {
  return {.heads = 1, .key_heads = 1, .queries = length, .keys = length};
}

Row long_head_row() {
  const Shape shape = head(65536);
  constexpr Pass kPass = Pass::kForwardBackward;
  return {.name = row_name("dot", "65536-one-head", "dense", kPass),
          .pass = kPass,
          .work = dot_work(kPass, shape, pairs_dense(65536, 65536)),
          .make = [=] { return Instance{.ours = Operands(shape).ours(kPass, {})}; },
          .figures = {memory_at_most(4)},
          .tensor_bytes = tensor_bytes(shape),
          .measure = Measure::kMemory};
}

Row selected_weights_row() {
  constexpr int64_t kLength = 16384, kTop = 8;
  const Shape shape = head(kLength);
  // A weight and an index for each; the inputs' size again for packed keys and a worker's scratch.
  const double returned = 8.0 * kLength * kTop;
  return {.name = row_name("weights", "16384", "top-8", Pass::kForward),
          .work = {.pairs = pairs_dense(kLength, kLength),
                   .flops = 2.0 * kLength * kLength * shape.width},
          .make =
              [=] {
                const Operands x(shape);
                return Instance{.ours = {"fovea",
                                         [x] {
                                           const auto chosen =
                                               weights(x.query.detach(), x.key.detach(), {},
                                                       {.top_k = kTop});
                                           return Tensors{chosen.weights, chosen.indices};
                                         }},
                                .yardsticks = {x.ours(Pass::kForward, {}, "forward")}};
              },
          .figures = {times_yardstick_at_most(1.6, "forward"),
                      memory_bytes_at_most(
                          4 * returned + 4.0 * shape.key_size() + 4e6,
                          "4 x what is returned, the keys once, 2 MB of scratch a core")},
          .tensor_bytes = tensor_bytes(shape)};
}

void add_series(std::vector<Row>& rows) {
  for (int64_t n : {1024, 2048, 4096, 8192, 16384}) {
    const Shape shape = head(n);
    for (Pass pass : {Pass::kForward, Pass::kForwardBackward}) {
      if (pass == Pass::kForwardBackward && n > 8192) continue;
      rows.push_back(
          {.name = row_name("series", std::to_string(n), "dense", pass),
           .pass = pass,
           .work = dot_work(pass, shape, pairs_dense(n, n)),
           .make = [=] { return Instance{.ours = Operands(shape).ours(pass, {})}; },
           .tensor_bytes = tensor_bytes(shape),
           .series = Series{std::string("dense, ") + name(pass), static_cast<double>(n), 2, 1}});
    }
    rows.push_back({.name = row_name("series", std::to_string(n), "window-256", Pass::kForward),
                    .work = dot_work(Pass::kForward, shape, pairs_window(n, 255, 0)),
                    .make =
                        [=] {
                          return Instance{.ours = Operands(shape).ours(
                                              Pass::kForward, {.structure = Window{255, 0}})};
                        },
                    .tensor_bytes = tensor_bytes(shape),
                    .series = Series{"window 256, forward", static_cast<double>(n), 1, 1}});
  }
}

}  // namespace

std::vector<Row> memory_rows() {
  std::vector<Row> rows = {long_head_row(), selected_weights_row()};
  add_series(rows);
  return rows;
}

}  // namespace fovea::bench
