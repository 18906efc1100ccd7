#include "fovea/nn/squeeze_excite.h"

#include <ATen/ATen.h>

#include "fovea/attend.h"
#include "nn/positive.h"

namespace fovea::nn {

SqueezeExciteImpl::SqueezeExciteImpl(const SqueezeExciteOptions& options) : options_(options) {
  check_positive("channels", options.channels);
  check_positive("reduction", options.reduction);
  reset();
}

void SqueezeExciteImpl::reset() {
  const int64_t between = options_.units > 0
                              ? options_.units
                              : std::max<int64_t>(1, options_.channels / options_.reduction);
  using torch::nn::LinearOptions;
  fc1 = register_module("fc1",
                        torch::nn::Linear(LinearOptions(options_.channels, between).bias(false)));
  fc2 = register_module("fc2",
                        torch::nn::Linear(LinearOptions(between, options_.channels).bias(false)));
  // Gates begin near one half: a saturated one has no gradient and stays where it is.
  const at::NoGradGuard no_grad;
  fc2->weight.mul_(0.1);
}

at::Tensor SqueezeExciteImpl::scores(const at::Tensor& u) {
  if (u.dim() < 3 || u.size(1) != options_.channels)
    throw InvalidArgument(
        "u: " + std::to_string(u.dim()) + " dimensions" +
        (u.dim() > 1 ? ", " + std::to_string(u.size(1)) + " channels" : std::string()) +
        ", expected [batch, " + std::to_string(options_.channels) + ", ...]");
  return fc2(fc1(u.flatten(2).mean(2)).relu());
}

at::Tensor SqueezeExciteImpl::gated(const at::Tensor& maps, const at::Tensor& scores) {
  if (maps.dim() < 3 || maps.sizes().slice(0, 2) != scores.sizes())
    throw InvalidArgument("maps: " + c10::str(maps.sizes()) + ", expected " +
                          c10::str(scores.sizes()) + " (scores), then the size of a map");
  const at::Tensor score = scores.reshape({-1, 1, 1}), flat = maps.flatten(2);
  const int64_t channels = score.size(0);  // of all items
  // Each is a query with one key, itself, whose value is the whole map. As rows of a graph they are
  // computed one by one; as heads of one query and one key each would take a tile.
  const at::Tensor itself = at::arange(channels + 1, maps.options().dtype(at::kInt));
  return attend(score, at::ones_like(score), flat.reshape({channels, 1, flat.size(2)}),
                {.score = Dot{1.0},
                 .normaliser = Sigmoid{},
                 .structure = Graph{itself, itself.narrow(0, 0, channels)}})
      .reshape(maps.sizes());
}

at::Tensor SqueezeExciteImpl::forward(const at::Tensor& u) { return gated(u, scores(u)); }

}  // namespace fovea::nn
