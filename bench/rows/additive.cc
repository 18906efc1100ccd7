// Additive scores against libtorch's eager composition, which holds queries x keys x width.
#include "bench/rows/operands.h"
#include "bench/peers/peers.h"

namespace fovea::bench {
namespace {

Row additive_row(const std::string& size, const Shape& shape, Pass pass, double bound) {
  const double pairs = pairs_dense(shape.queries, shape.keys) * shape.batch * shape.heads;
  Work work = dot_work(pass, shape, pairs_dense(shape.queries, shape.keys));
  work.elements = pairs * static_cast<double>(shape.width);  // one tanh a pair and feature
  return {
      .name = row_name("additive", size, "dense", pass),
      .pass = pass,
      .roof = Roof::kTanh,
      .work = work,
      .make =
          [=] {
            const Operands x(shape);
            const at::Tensor weight = normal({shape.heads, shape.width}, 6);
            return Instance{
                .ours = x.ours_with(pass, {.score = Additive{weight}}, {weight}),
                .peers = {x.peer_with(pass, "eager", {weight},
                                      [weight](const Operands& y) {
                                        return peers::additive(y.query, y.key, y.value, weight);
                                      }),
                          x.peer_with(pass, "eager by head", {weight}, [weight](const Operands& y) {
                            return peers::additive_by_head(y.query, y.key, y.value, weight);
                          })}};
          },
      .figures = {times_peer_at_least(bound)},
      .tensor_bytes = tensor_bytes(shape)};
}

}  // namespace

std::vector<Row> additive_rows() {
  const Shape words{.batch = 32,
                    .heads = 1,
                    .key_heads = 1,
                    .queries = 50,
                    .keys = 50,
                    .width = 256,
                    .value_width = 256};
  const Shape heads{.queries = 512, .keys = 512};
  return {additive_row("32x50", words, Pass::kForward, 45),
          additive_row("32x50", words, Pass::kForwardBackward, 25),
          additive_row("8x512", heads, Pass::kForward, 45),
          additive_row("8x512", heads, Pass::kForwardBackward, 25)};
}

}  // namespace fovea::bench
