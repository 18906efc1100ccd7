// The multi-head module whole, projections included, beside torch::nn::MultiheadAttention with the
// same weights.
#include <torch/torch.h>

#include "bench/rows/row.h"
#include "fovea/nn/multi_head.h"

namespace fovea::bench {
namespace {

constexpr int64_t kBatch = 8, kLength = 256, kWidth = 512, kHeads = 8;

void copy_weights(const torch::nn::Module& from, torch::nn::Module& to) {
  const torch::NoGradGuard no_grad;
  const auto source = from.named_parameters();
  for (auto& parameter : to.named_parameters()) parameter.value().copy_(source[parameter.key()]);
}

Row module_row(Pass pass) {
  const Shape shape{
      .batch = kBatch, .heads = kHeads, .key_heads = kHeads, .queries = kLength, .keys = kLength};
  Work work = dot_work(pass, shape, pairs_dense(kLength, kLength));
  // Four projections; backward takes two products for each.
  work.flops += 4 * 2.0 * kBatch * kLength * kWidth * kWidth * (pass == Pass::kForward ? 1 : 3);
  return {.name = std::string("multi-head/8x256x512/dense/") + name(pass),
          .pass = pass,
          .work = work,
          .make = [=] {
            torch::manual_seed(1);
            nn::MultiHead ours(nn::MultiHeadOptions{.width = kWidth, .heads = kHeads});
            torch::nn::MultiheadAttention peer(kWidth, kHeads);
            copy_weights(*ours, *peer);
            const at::Tensor x = normal({kBatch, kLength, kWidth}, 1);
            const at::Tensor gradient = normal({kBatch, kLength, kWidth}, 4).detach();
            return Instance{
                .ours = {"fovea",
                         runner(pass, {x}, gradient, [=]() mutable { return ours->forward(x); })},
                // Sequence first, as the module takes it; weights not requested.
                .peers = {{"MultiheadAttention", runner(pass, {x}, gradient, [=]() mutable {
                             const at::Tensor y = x.transpose(0, 1);
                             return std::get<0>(peer->forward(y, y, y, {}, false)).transpose(0, 1);
                           })}}};
          }};
}

}  // namespace

std::vector<Row> module_rows() {
  return {module_row(Pass::kForward), module_row(Pass::kForwardBackward)};
}

}  // namespace fovea::bench
